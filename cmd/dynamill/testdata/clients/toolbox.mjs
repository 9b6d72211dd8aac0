import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { DeleteItemCommand, Entity, GetItemCommand, item, number, PutItemCommand, QueryCommand, string, Table, UpdateItemCommand }
  from "dynamodb-toolbox";
import { connection, live, table } from "./application.mjs";

const store = new Table({
  documentClient: DynamoDBDocumentClient.from(new DynamoDBClient(connection)),
  name: table, partitionKey: { name: "pk", type: "string" }, sortKey: { name: "sk", type: "string" },
});
const user = new Entity({
  name: "User", table: store,
  schema: item({ userId: string().key(), name: string(), postCount: number().optional() }),
  computeKey: ({ userId }) => ({ pk: `USER#${userId}`, sk: "PROFILE" }),
});
const post = new Entity({
  name: "Post", table: store,
  schema: item({
    userId: string().key(), postId: string().key(), title: string(), authorName: string().optional(), slug: string().optional(),
  }),
  computeKey: ({ userId, postId }) => ({ pk: `USER#${userId}`, sk: `POST#${postId}` }),
});

await live({
  putUser: (it) => user.build(PutItemCommand).item(it).send(),
  putPost: (it) => post.build(PutItemCommand).item(it).send(),
  renameUser: (userId, name) => user.build(UpdateItemCommand).item({ userId, name }).send(),
  retitle: (userId, postId, title) => post.build(UpdateItemCommand).item({ userId, postId, title }).send(),
  removePost: (userId, postId) => post.build(DeleteItemCommand).key({ userId, postId }).send(),
  user: async (userId) => (await user.build(GetItemCommand).key({ userId }).options({ consistent: true }).send()).Item ?? {},
  posts: async (userId) =>
    (await store.build(QueryCommand).query({ partition: `USER#${userId}`, range: { beginsWith: "POST#" } }).entities(post)
      .options({ consistent: true }).send()).Items ?? [],
});
