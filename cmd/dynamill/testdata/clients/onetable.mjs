import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { Table } from "dynamodb-onetable";
import { Dynamo } from "dynamodb-onetable/Dynamo";
import { connection, live, table } from "./application.mjs";

const store = new Table({
  client: new Dynamo({ client: new DynamoDBClient(connection) }),
  name: table,
  partial: false,
  schema: {
    format: "onetable:1.1.0",
    version: "0.0.1",
    indexes: { primary: { hash: "pk", sort: "sk" } },
    models: {
      User: {
        pk: { type: String, value: "USER#${userId}" }, sk: { type: String, value: "PROFILE" },
        userId: { type: String, required: true }, name: { type: String }, postCount: { type: Number },
      },
      Post: {
        pk: { type: String, value: "USER#${userId}" }, sk: { type: String, value: "POST#${postId}" },
        userId: { type: String, required: true }, postId: { type: String, required: true },
        title: { type: String }, authorName: { type: String }, slug: { type: String },
      },
    },
  },
});
const user = store.getModel("User");
const post = store.getModel("Post");

await live({
  putUser: (item) => user.create(item, { exists: null }),
  putPost: (item) => post.create(item, { exists: null }),
  renameUser: (userId, name) => user.update({ userId, name }),
  retitle: (userId, postId, title) => post.update({ userId, postId, title }),
  removePost: (userId, postId) => post.remove({ userId, postId }),
  user: async (userId) => (await user.get({ userId }, { consistent: true })) ?? {},
  posts: (userId) => post.find({ userId, sk: { begins: "POST#" } }, { consistent: true }),
});
