import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { Entity } from "electrodb";
import { connection, live, table } from "./application.mjs";

const options = { client: new DynamoDBClient(connection), table };
const user = new Entity({
  model: { service: "blog", entity: "user", version: "1" },
  attributes: { userId: { type: "string" }, name: { type: "string" }, postCount: { type: "number" } },
  indexes: { primary: { pk: { field: "pk", composite: ["userId"] }, sk: { field: "sk", composite: [] } } },
}, options);
const post = new Entity({
  model: { service: "blog", entity: "post", version: "1" },
  attributes: {
    userId: { type: "string" }, postId: { type: "string" }, title: { type: "string" }, authorName: { type: "string" }, slug: { type: "string" },
  },
  indexes: { primary: { pk: { field: "pk", composite: ["userId"] }, sk: { field: "sk", composite: ["postId"] } } },
}, options);

await live({
  putUser: (item) => user.put(item).go(),
  putPost: (item) => post.put(item).go(),
  renameUser: (userId, name) => user.update({ userId }).set({ name }).go(),
  retitle: (userId, postId, title) => post.update({ userId, postId }).set({ title }).go(),
  removePost: (userId, postId) => post.delete({ userId, postId }).go(),
  user: async (userId) => (await user.get({ userId }).go({ consistent: true })).data ?? {},
  posts: async (userId) => (await post.query.primary({ userId }).go({ consistent: true })).data,
});
