// An application with users and their posts. Each client library of this folder gives it a store, whose functions write, read and
// query by that library alone. The application ends when it sees what the rules derive, or fails after a minute.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

export const table = process.env.CLIENT_TABLE;
export const connection = { endpoint: process.env.CLIENT_ENDPOINT, region: process.env.AWS_REGION };

export async function live(store) {
  await store.putUser({ userId: "U1", name: "Ann" });
  for (const postId of ["P1", "P2", "P3"]) {
    await store.putPost({ userId: "U1", postId, title: `Title of ${postId}` });
  }
  await shows(store, { userId: "U1", name: "Ann", postCount: 3 }, ["P1 Ann title of p1", "P2 Ann title of p2", "P3 Ann title of p3"]);

  // Stamps do not disturb updates, deletions, and items that are written whole.
  await store.renameUser("U1", "Anna");
  await store.retitle("U1", "P1", "Another");
  await store.removePost("U1", "P3");
  await shows(store, { userId: "U1", name: "Anna", postCount: 2 }, ["P1 Anna another", "P2 Anna title of p2"]);
  await store.putUser({ userId: "U1", name: "Eve" });
  await store.putPost({ userId: "U1", postId: "P2", title: "New" });
  await shows(store, { userId: "U1", name: "Eve", postCount: 2 }, ["P1 Eve another", "P2 Eve new"]);
}

// shows waits until the library reads this user, and these posts by a query.
async function shows(store, user, posts) {
  for (let tries = 0; ; tries++) {
    try {
      const { userId, name, postCount } = await store.user("U1");
      assert.deepEqual({ userId, name, postCount }, user);
      const found = (await store.posts("U1")).map((post) => `${post.postId} ${post.authorName} ${post.slug}`);
      assert.deepEqual(found.sort(), posts);
      return;
    } catch (error) {
      if (!(error instanceof assert.AssertionError) || tries >= 300) throw error;
    }
    await sleep(200);
  }
}
