// Drives graphile-worker, in an environment of its own: `drive_graphile_worker.mjs ROLE CONFIG`. The lines are those
// of `lines.py`: JSON objects, commands on standard input, events on standard output.

import { createInterface } from "node:readline";
import { Logger, makeWorkerUtils, run, runMigrations } from "graphile-worker";
import pg from "pg";

const FILL_BATCH = 1000;

const logger = new Logger(() => (level, message) => {
  if (level === "error" || level === "warning") process.stderr.write(`${message}\n`);
});

// Date.now() has milliseconds only: the moments when it ticks tie the exact clock to the wall's, to some microseconds.
function wallOffset() {
  let offset = -Infinity;
  for (let tick = 0, before = Date.now(); tick < 5; ) {
    const after = Date.now();
    if (after !== before) {
      offset = Math.max(offset, after - performance.now());
      before = after;
      tick += 1;
    }
  }
  return offset;
}
const OFFSET = wallOffset();
const now = () => Math.round((OFFSET + performance.now()) * 1e6);

function say(event, fields = {}) {
  process.stdout.write(`${JSON.stringify({ event, ...fields })}\n`);
}

function commands() {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await lines.next();
    if (done) process.exit(3); // nobody is left to drive for
    return JSON.parse(value);
  };
  const waitFor = async (name) => {
    const said = await next();
    if (said.command !== name) throw new Error(`The benchmark said ${said.command} where ${name} was due.`);
  };
  return { next, waitFor };
}

function makePool(config, size) {
  const { host, port, user, dbname } = config.connection;
  return new pg.Pool({ host, port, user, database: dbname, max: size });
}

function makeTally(wanted, echo) {
  const seen = new Map();
  const tally = { handled: 0, first: null };
  tally.count = (n) => {
    const at = now();
    tally.first ??= at;
    seen.set(n, (seen.get(n) ?? 0) + 1);
    tally.handled += 1;
    if (echo) say("started", { n, at });
    if (tally.handled === wanted) say("handled", { first_at: tally.first, at });
  };
  tally.sums = () => {
    const repeated = [...seen.values()].filter((times) => times > 1).length;
    return { handled: tally.handled, distinct: seen.size, repeated };
  };
  return tally;
}

async function withUtils(config, size, act) {
  const pgPool = makePool(config, size);
  const utils = await makeWorkerUtils({ pgPool, logger });
  try {
    await act(utils);
  } finally {
    await utils.release();
    await pgPool.end();
  }
}

async function setUp(config) {
  const pgPool = makePool(config, 2);
  await runMigrations({ pgPool, logger });
  await pgPool.end();
  say("done");
}

async function fill(config) {
  await withUtils(config, 2, async (utils) => {
    for (let first = 0; first < config.jobs; first += FILL_BATCH) {
      const count = Math.min(FILL_BATCH, config.jobs - first);
      await utils.addJobs(Array.from({ length: count }, (_, i) => ({ identifier: "noop", payload: { n: first + i } })));
    }
  });
  say("done");
}

async function work(config) {
  const { waitFor } = commands();
  const tally = makeTally(config.jobs, config.echo ?? false);
  const pgPool = makePool(config, config.pool);
  const batching =
    config.local_queue > 0
      ? { localQueue: { size: config.local_queue }, completeJobBatchDelay: config.complete_delay, failJobBatchDelay: 0 }
      : {};
  const preset = { worker: { concurrentJobs: config.concurrency, maxPoolSize: config.pool, ...batching } };
  const taskList = { noop: (payload) => tally.count(payload.n) };
  say("ready");
  await waitFor("go");
  say("begun", { at: now() });
  const runner = await run({ preset, pgPool, logger, taskList, noHandleSignals: true, parsedCronItems: [] });
  await waitFor("stop");
  await runner.stop();
  await pgPool.end();
  say("stopped", tally.sums());
  process.exit(0); // a timer of the worker's would keep it alive
}

async function enqueue(config) {
  const { waitFor } = commands();
  await withUtils(config, config.tasks, async (utils) => {
    let number = 0;
    for (let i = 0; i < config.warm_up; i++) await utils.addJob("noop", { n: number++ });
    say("ready");
    await waitFor("go");
    const took = [];
    const started = performance.now();
    const end = started + config.seconds * 1000;
    const one = async () => {
      for (let before; (before = performance.now()) < end; ) {
        await utils.addJob("noop", { n: number++ });
        took.push(Math.round((performance.now() - before) * 1000));
      }
    };
    await Promise.all(Array.from({ length: config.tasks }, one));
    say("done", { jobs: took.length, seconds: (performance.now() - started) / 1000, microseconds: took });
  });
  process.exit(0);
}

async function pace(config) {
  const { next } = commands();
  await withUtils(config, 2, async (utils) => {
    say("ready");
    for (let said = await next(); said.command === "next"; said = await next()) {
      await new Promise((resolve) => setTimeout(resolve, said.pause_seconds * 1000));
      const at = now();
      await utils.addJob("noop", { n: said.n });
      say("enqueued", { n: said.n, at });
    }
    say("stopped");
  });
  process.exit(0);
}

const roles = { set_up: setUp, fill, work, enqueue, pace };
await roles[process.argv[2]](JSON.parse(process.argv[3]));
