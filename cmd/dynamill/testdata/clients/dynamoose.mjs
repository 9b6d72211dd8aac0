import { DynamoDB } from "@aws-sdk/client-dynamodb";
import dynamoose from "dynamoose";
import { connection, live, table } from "./application.mjs";

dynamoose.aws.ddb.set(new DynamoDB(connection));
const keys = { pk: { type: String, hashKey: true }, sk: { type: String, rangeKey: true } };
const user = dynamoose.model("User", new dynamoose.Schema({
  ...keys, kind: { type: String, default: "User" }, userId: String, name: String, postCount: Number,
}));
const post = dynamoose.model("Post", new dynamoose.Schema({
  ...keys, kind: { type: String, default: "Post" }, userId: String, postId: String, title: String, authorName: String, slug: String,
}));
new dynamoose.Table(table, [user, post], { create: false, waitForActive: false });

const userKey = (userId) => ({ pk: `USER#${userId}`, sk: "PROFILE" });
const postKey = (userId, postId) => ({ pk: `USER#${userId}`, sk: `POST#${postId}` });

await live({
  putUser: (item) => user.create({ ...userKey(item.userId), ...item }, { overwrite: true }),
  putPost: (item) => post.create({ ...postKey(item.userId, item.postId), ...item }, { overwrite: true }),
  renameUser: (userId, name) => user.update(userKey(userId), { name }),
  retitle: (userId, postId, title) => post.update(postKey(userId, postId), { title }),
  removePost: (userId, postId) => post.delete(postKey(userId, postId)),
  user: async (userId) => (await user.get(userKey(userId), { consistent: true })) ?? {},
  posts: (userId) => post.query("pk").eq(`USER#${userId}`).where("sk").beginsWith("POST#").consistent().exec(),
});
