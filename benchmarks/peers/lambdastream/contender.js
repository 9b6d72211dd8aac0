'use strict';

// A handler written with aws-lambda-stream, as its README shows it, fed from the stream in the way that the
// contenders written in Go are. It speaks their protocol: a job and commands come in lines of JSON, messages go out.

const http = require('node:http');
const fs = require('node:fs');
const readline = require('node:readline');

const zero = () => ({
  CPU: 0, MemoryPeak: 0, WriteRequests: 0, ReadRequests: 0, LeaseRequests: 0, Polls: 0, Records: 0, WriteUnits: 0, ReadUnits: 0,
});
let used = zero();
let active = Date.now();
let busy = 0; // batches that are handled
let cpuBefore = process.cpuUsage();

const isWrite = (name) => /^(PutItem|UpdateItem|DeleteItem|BatchWriteItem|TransactWriteItems|BatchExecuteStatement)/.test(name);
const isRead = (name) => /^(GetItem|BatchGetItem|Query|Scan)/.test(name);

// Every attempt passes here, a repeated one too. This comes before the SDK, which keeps the function it finds.
const request = http.request;
http.request = (options, ...more) => {
  const operation = String(options.headers?.['x-amz-target']).split('.')[1];
  if (operation === 'GetRecords') used.Polls += 1;
  if (isRead(operation)) used.ReadRequests += 1;
  if (isWrite(operation)) {
    used.WriteRequests += 1;
    active = Date.now();
  }
  return request(options, ...more);
};

const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
const ms = (nanoseconds) => nanoseconds / 1e6;

const lines = readline.createInterface({ input: process.stdin });
let job;
let openGate;
const gate = new Promise((resolve) => { openGate = resolve; });

lines.on('line', (line) => {
  const said = JSON.parse(line);
  if (!job) {
    job = said;
    follow().catch((err) => end({ Event: 'failed', Error: String(err.stack || err) }));
  } else if (said === 'open') {
    begin();
  } else if (said === 'report') {
    report();
  } else {
    end({ Event: 'stopped' });
  }
});
lines.on('close', () => process.exit(0));

function end(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`, () => process.exit(0));
}

function begin() {
  used = zero();
  active = Date.now();
  cpuBefore = process.cpuUsage();
  openGate();
}

async function report() {
  for (let left = 1; left > 0;) {
    if (busy > 0) active = Date.now();
    left = active + ms(job.Quiet) - Date.now();
    await sleep(Math.max(left, 0));
  }
  const cpu = process.cpuUsage(cpuBefore);
  used.CPU = (cpu.user + cpu.system) * 1000;
  const peak = /VmHWM:\s+(\d+) kB/.exec(fs.readFileSync('/proc/self/status', 'utf8'));
  used.MemoryPeak = peak ? Number(peak[1]) * 1024 : 0;
  say({ Event: 'usage', Usage: used });
}

async function follow() {
  Object.assign(process.env, {
    AWS_ENDPOINT_URL: job.Endpoint.URL, AWS_REGION: 'us-east-1', AWS_ACCESS_KEY_ID: job.Endpoint.Key, AWS_SECRET_ACCESS_KEY: 'secret',
    ENTITY_TABLE_NAME: job.Table, TIMEOUT: '10000',
    PROJECT: 'peers', // without it every record is taken for the handler's own, and is left out
  });
  const { DynamoDBStreamsClient, DescribeStreamCommand, GetShardIteratorCommand, GetRecordsCommand } = require('@aws-sdk/client-dynamodb-streams');
  const handle = handler();
  const client = new DynamoDBStreamsClient({});
  const StreamArn = job.StreamARN;
  const { StreamDescription: { Shards } } = await client.send(new DescribeStreamCommand({ StreamArn }));
  const ShardIteratorType = job.Oldest ? 'TRIM_HORIZON' : 'LATEST';
  if (!job.Gated) begin();
  const opened = await Promise.all(Shards.map(({ ShardId }) => client.send(new GetShardIteratorCommand({ StreamArn, ShardId, ShardIteratorType }))));
  active = Date.now();
  say({ Event: 'ready' });
  await gate;
  await Promise.all(opened.map(async ({ ShardIterator }) => {
    const read = (iterator) => client.send(new GetRecordsCommand({ ShardIterator: iterator }));
    for (let next = read(ShardIterator); ;) {
      const { Records, NextShardIterator } = await next;
      if (!NextShardIterator) return;
      if (Records.length === 0) {
        await sleep(ms(job.Poll));
        next = read(NextShardIterator);
        continue;
      }
      used.Records += Records.length;
      active = Date.now();
      next = read(NextShardIterator); // fetched while this page is handled
      busy += 1;
      await handle({ Records: Records.map(event) });
      busy -= 1;
      active = Date.now();
    }
  }));
}

// event is a record as Lambda hands it over: its time is a number.
const event = (record) => ({
  ...record,
  dynamodb: { ...record.dynamodb, ApproximateCreationDateTime: record.dynamodb.ApproximateCreationDateTime.getTime() / 1000 },
});

// handler makes the function for a workload.
function handler() {
  const { initialize, initializeFrom, fromDynamodb, toPromise, materialize, update, updateExpression } = require('aws-lambda-stream');
  const { DynamoDBDocumentClient } = require('@aws-sdk/lib-dynamodb');
  meter(DynamoDBDocumentClient);
  const table = job.Table;
  const parallel = 16;
  const condition = { ConditionExpression: 'attribute_exists(pk)' };
  const rules = {
    count: [{
      id: 'count', flavor: materialize, parallel, eventType: /^order#.*-(created|deleted)$/,
      toUpdateRequest: (uow) => ({
        Key: { pk: uow.event.partitionKey, sk: 'PROFILE' },
        UpdateExpression: 'ADD orderCount :by', ExpressionAttributeValues: { ':by': uow.event.raw.new ? 1 : -1 },
      }),
    }],
    copy: [{
      id: 'rename', flavor: update, parallel, eventType: 'metadata-updated', splitOn: 'queryResponse',
      filters: [(uow) => uow.event.raw.new.name !== uow.event.raw.old.name],
      toQueryRequest: (uow) => ({
        KeyConditionExpression: 'pk = :group and begins_with(sk, :member)', ProjectionExpression: 'pk, sk', ConsistentRead: true,
        ExpressionAttributeValues: { ':group': uow.event.partitionKey, ':member': 'USER#' },
      }),
      toUpdateRequest: (uow) => ({ Key: uow.queryResponse, ...updateExpression({ groupName: uow.event.raw.new.name }), ...condition }),
    }, {
      id: 'fill', flavor: update, parallel, eventType: /^user#.*-created$/, filters: [(uow) => uow.event.partitionKey.startsWith('GROUP#')],
      toGetRequest: (uow) => ({
        RequestItems: { [table]: { Keys: [{ pk: uow.event.partitionKey, sk: 'METADATA' }], ConsistentRead: true } },
      }),
      toUpdateRequest: (uow) => ({
        Key: { pk: uow.event.partitionKey, sk: uow.event.raw.new.sk },
        ...updateExpression({ groupName: uow.batchGetResponse.Responses[table][0].name }), ...condition,
      }),
    }],
    mirror: [{
      id: 'mirror', flavor: materialize, parallel, eventType: /^group#.*-(created|updated)$/,
      filters: [(uow) => uow.event.partitionKey.startsWith('USER#')],
      toUpdateRequest: (uow) => ({
        Key: { pk: uow.event.raw.new.sk, sk: uow.event.partitionKey },
        ...updateExpression({ role: uow.event.raw.new.role, joinedAt: uow.event.raw.new.joinedAt }),
      }),
    }],
  };
  rules.rename = rules.copy;
  rules.fill = rules.copy;
  // Without a place for faults an error fails the batch, as a Lambda function's would be tried again.
  return (batch) => initialize(initializeFrom(rules[job.Workload])).assemble(fromDynamodb(batch), false).through(toPromise);
}

// meter asks for the consumed capacity of each call and adds it up.
function meter(client) {
  const send = client.prototype.send;
  client.prototype.send = async function metered(command, ...more) {
    command.input.ReturnConsumedCapacity = 'TOTAL';
    const out = await send.call(this, command, ...more);
    const units = [out.ConsumedCapacity].flat().reduce((sum, one) => sum + (one?.CapacityUnits || 0), 0);
    if (isWrite(command.constructor.name.replace(/^(Put|Update|Delete)Command/, '$1Item'))) used.WriteUnits += units;
    else used.ReadUnits += units;
    return out;
  };
}
