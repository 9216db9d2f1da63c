import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findBans, parsersOfInput } from './bans.ts';
import { isTestCode, repositoryPaths, root } from './sources.ts';

const production = 'packages/dhcp/src/packet.ts';

function bansIn(text: string, path: string = production): string[] {
  return findBans({ path, text }).map(({ line, message }) => `${line} ${message}`);
}

describe('calls that a simulation could not replay', () => {
  const planted = [
    'const now = Date.now();',
    'const now = new Date();',
    'const start = performance.now();',
    'const start = process.hrtime.bigint();',
    'setTimeout(run, 5);',
    'const signal = AbortSignal.timeout(5);',
    'const dice = Math.random();',
    'const id = crypto.randomUUID();',
    "import { randomBytes } from 'node:crypto';",
    "console.log('here');",
    'const home = process.env;',
    'const page = await fetch(url);',
  ];

  test.each(planted)('finds %s in production code', (line) => {
    expect(bansIn(`\n${line}\n`)).toEqual(expect.arrayContaining([expect.stringMatching(/^2 /)]));
  });

  test.each(planted)('lets %s stand where the world is touched, and in tests', (line) => {
    const places = [
      'packages/platform/src/node/clock.ts',
      'packages/store/src/sqlite/file.ts',
      'agent/src/main.ts',
      'packages/dhcp/src/packet.test.ts',
      'packages/store/src/conformance/race.ts',
      'test/lab/qemu.ts',
    ];
    for (const path of places) expect(bansIn(line, path)).toEqual([]);
  });

  test('lets pure uses of the same words stand', () => {
    const pure = [
      'const text = new Date(nowMs).toISOString();',
      "const text = 'Date.now() and setTimeout(x)';",
      '// console.log is banned',
      'const version = process.versions.node;',
      'await cache.fetch(url);',
    ];
    expect(bansIn(pure.join('\n'))).toEqual([]);
  });
});

describe('decisions by texts for people', () => {
  const planted = [
    "if (failure.message.includes('locked the account')) wait();",
    'if (/^clean /.test(lastError.reason)) retry();',
    'const [, owner] = /it is (.*)/.exec(error.message) ?? [];',
    "if (backoff.givenUpReason === 'the store was restored') look();",
    'if (hold.reason.startsWith(kind)) keep();',
  ];

  test.each(planted)('finds %s', (line) => {
    expect(bansIn(line)).toEqual([
      expect.stringMatching(/(decides by|compares) a text for people/),
    ]);
  });

  test.each(planted)('lets %s stand where foreign programs are read, and in tests', (line) => {
    const places = ['packages/bmc/src/ipmi/refusal.ts', 'agent/src/bmc.test.ts'];
    for (const path of places) expect(bansIn(line, path)).toEqual([]);
  });

  test('lets an empty text stand for none', () => {
    expect(bansIn("if (backoff.givenUpReason !== '') stop();")).toEqual([]);
  });
});

const host = 'controlplane/src/host';
const messages = 'packages/messages/src';

test.each([
  ["if (step.skippedBecause !== '') skip();", 'isPlannedToSkip()', `${messages}/a.ts`],
  ["if (step.title === '') fail();", 'isOfTemplate()', `${host}/pass/step-names.ts`],
  ["if (backoff.givenUpReason === '') retry();", 'isGivenUp()', `${messages}/a.ts`],
  ["const givenUp = backoff?.givenUpReason ?? '';", 'isGivenUp()', `${messages}/a.ts`],
  ["if (hello.storeRefused !== '') hold();", 'storeRefusalOf()', `${messages}/store-refusal.ts`],
  ["if (duplicateAgent === '') go();", 'duplicateAgentOf()', `${messages}/duplicate-agent.ts`],
  ["if ((duplicateAgent ?? '') !== '') go();", 'duplicateAgentOf()', `${messages}/a.ts`],
  ["if (status.stoppedReason !== '') stop();", 'isStopped()', `${messages}/a.ts`],
  ["if (bootOldDiskReason === '') no();", 'oldDiskPermission()', `${host}/power/pending-power.ts`],
  ["if (first.blockedBecause === '') go();", 'the blocker', `${messages}/a.ts`],
  ["if (plan.refused === '') start();", 'the refusal of a plan', `${messages}/a.ts`],
  ["if (notRunnable === '') run();", 'its kind', `${messages}/a.ts`],
  ["if (planReason === '') leave();", 'the hash', `${messages}/a.ts`],
])('%s stands only in one place', (line, predicate, place) => {
  for (const path of [
    `${host}/run/engine.ts`,
    'packages/cli/src/a.ts',
    'packages/console/src/a.tsx',
  ]) {
    expect(bansIn(line, path)).toEqual([expect.stringContaining(predicate)]);
  }
  expect(bansIn(line, place)).toEqual([]);
});

test.each(["if (name.startsWith('power.')) keep();", "return each.step.startsWith('run.');"])(
  'the check finds %s everywhere but in tests',
  (line) => {
    for (const path of ['agent/src/bmc.ts', 'packages/template/src/actions.ts']) {
      expect(bansIn(line, path)).toEqual([expect.stringContaining('isTemplateOnly()')]);
    }
    expect(bansIn(line, 'packages/template/src/actions.test.ts')).toEqual([]);
  },
);

describe('decisions by a text in a variable', () => {
  const decider = 'controlplane/src/host/explain/explain.ts';
  const planted = [
    'if (fate.startsWith(erases)) keep();',
    "if (!text.endsWith(' handOff')) return text;",
    'const more = problems.filter(({ text }) => !said.includes(text));',
    'if (words?.includes(name)) skip();',
    "if (device.fate === 'kept') skip();",
    "return verdict.reason === lateReason ? ' late' : ' stale';",
    "if (verdict.reason === 'its attempt was over before') keep();",
    'if (lateReason !== verdict.reason) act();',
    'const isWanted = ({ reason }: Hold) => wanted.some((each) => each.reason === reason);',
    'return each.reason !== reason || each.scope !== scope || each.by !== by.actor;',
    'if (said === each.reason) lift(each);',
    "if (hold.reason === 'fencePending: h1') lift(hold);",
    'const isOver = ({ clearedBy }: Fault) => clearedBy === anySuccess;',
    'if (hardwareFaultOf(status)?.message !== text) clearFault(pass, bootMacUnknown);',
  ];

  test.each(planted)('finds %s where hosts are decided about', (line) => {
    for (const path of [decider, 'agent/src/operations/slot.ts']) {
      expect(bansIn(line, path)).toEqual([expect.stringContaining('decides by a text')]);
    }
  });

  test.each(planted)('lets %s stand elsewhere, and in tests', (line) => {
    for (const path of ['packages/cli/src/output/table.ts', 'agent/src/bmc.test.ts']) {
      expect(bansIn(line, path)).toEqual([]);
    }
  });

  test('lets codes, empty texts and kinds of values stand', () => {
    const lines = [
      "if (held?.reason === 'halted') delete record.halt;",
      'if (result.reason === agent.ConflictReason.DUPLICATE) return again;',
      "if (request.reason === '' || reason === undefined) return undefined;",
      "if (text === '') return undefined;",
      "return typeof said === 'object' && said !== null;",
      'const context = pool.contexts.includes(name);',
    ];
    expect(bansIn(lines.join('\n'), decider)).toEqual([]);
  });

  test.each(parsersOfInput)('needs its exception for $reason', ({ place }) => {
    const paths = repositoryPaths().filter((path) => place.test(path) && !isTestCode(path));
    const texts = paths.map((path) => readFileSync(join(root, path), 'utf8'));
    const found = texts.flatMap((text) => bansIn(text, decider));
    expect(found).toContainEqual(expect.stringContaining('decides by a text'));
  });
});

describe('words of closed lists that the wire carries as texts', () => {
  const planted = [
    "if (run.waiting?.reason === 'agnet') stopWaiting(pass, run);",
    'if (run.waiting?.reason !== reason) giveBack(pass, run);',
    "const isHeld = reasons.includes(host.status?.run?.waiting?.reason ?? '');",
    'return waitsForNobody.has(run.waiting.reason);',
    '  switch (waiting.reason) {',
    '  const waits = status?.run?.waiting?.reason;',
    "const { reason, message: said = '' } = status?.run?.waiting ?? {};",
    "const unknown = faults.find(({ type }) => type === 'bootMacUnknown');",
    'const standing = pass.status.faults.some((fault) => fault.type === type);',
    "const upToDate = status?.conditions.find(({ type }) => type === 'UpToDate');",
    "const degraded = conditions.find((each) => each.type === 'Degraded' && each.status);",
  ];
  const places = [
    'packages/cli/src/commands/host/target.ts',
    'packages/console/src/pages/pools.tsx',
    'controlplane/src/host/pass/pass.ts',
    'controlplane/src/host/run/clean-walk.test.ts',
    'test/e2e/clean-list.test.ts',
  ];

  test.each(planted)('finds that no compiler checks the word: %s', (line) => {
    for (const path of places) {
      const found = bansIn(line, path);
      expect(found).toContainEqual(expect.stringContaining('compares a word that no compiler'));
    }
  });

  test.each(planted)('lets %s stand where the lists are', (line) => {
    for (const file of ['waits.ts', 'host-faults.ts', 'pool-conditions.ts']) {
      expect(bansIn(line, `packages/messages/src/${file}`)).toEqual([]);
    }
  });

  test('lets such words be shown, and typed ones be compared', () => {
    const lines = [
      "if (hostWaitOf(run.waiting) === 'agent') stopWaiting(pass, run);",
      "const waits = run.waiting === undefined ? '' : `, waits for ${run.waiting.reason}`;",
      'return { blocker: waiting.reason, unblock };',
      'const types = status.faults.map(({ type }) => type);',
      "expect(run?.waiting?.reason).toBe('hold');",
      "if (hasFault(faults, 'bootMacUnknown')) inspect();",
      "const gone = drives.find(({ type }) => type === 'nvme');",
    ];
    for (const path of places) expect(bansIn(lines.join('\n'), path)).toEqual([]);
  });
});

describe('errors in log lines', () => {
  const planted = [
    "log.warn({ host, error: errorText(error) }, 'tried again');",
    'const fields = { error: error.message };',
    "log.error({ cause: errorText(error) }, 'broken');",
  ];

  test.each(planted)('finds the causes that are lost: %s', (line) => {
    expect(bansIn(line)).toEqual([expect.stringContaining('drops stack and causes')]);
  });

  test('lets a result carry its message', () => {
    expect(bansIn('return { error: refusal.type };')).toEqual([]);
  });
});

describe('texts of what was caught', () => {
  test.each([
    "const words = error instanceof Error ? error.message : 'no message';",
    'throw new StoreError(`cannot open it: ${String(cause)}`);',
    'const why = failure instanceof Error ? failure.stack : undefined;',
  ])('finds %s', (line) => {
    expect(bansIn(line)).toEqual([expect.stringContaining('drops causes')]);
    for (const path of ['packages/platform/src/error-text.ts', 'agent/src/bmc.test.ts']) {
      expect(bansIn(line, path)).toEqual([]);
    }
  });

  test('lets codes of errors be read', () => {
    expect(bansIn("return error instanceof Error && 'code' in error;")).toEqual([]);
  });
});

describe('moves of a host', () => {
  const planted = [
    'status.state = HostState.MANAGEABLE;',
    'turn.status.dirty = true;',
    'status.useEpoch += 1n;',
    'gone.status.state = HostState.GONE;',
    'Object.assign(host.status ?? {}, { image, state: HostState.GONE });',
  ];

  test.each(planted)('finds %s outside the table', (line) => {
    for (const path of ['host/events/landing.ts', 'host/api/delete-host.ts', 'pool/pass.ts']) {
      const found = bansIn(line, `controlplane/src/${path}`);
      expect(found).toEqual([expect.stringContaining('moves a host')]);
    }
    expect(bansIn(line, 'controlplane/src/host/pass/transitions.ts')).toEqual([]);
  });

  test('lets comparisons and the states of other things stand', () => {
    const lines = [
      'if (status.state === HostState.NEW) return;',
      'step.state = StepState.SKIPPED;',
    ];
    for (const line of lines) expect(bansIn(line, 'controlplane/src/host/machine.ts')).toEqual([]);
  });
});

describe('assumptions about protocols and drivers', () => {
  test.each([
    "if (endpoint.protocol === 'redfish') return 443;",
    "const port = ports[protocol ?? 'ipmi'];",
    'return protocol !== BmcProtocol.IPMI ? redfish : ipmi;',
    "driver: copy.driver === 'nats' ? 'nats' : 'sqlite',",
    "return name || 'ipmi';",
  ])('finds %s', (line) => {
    const found = bansIn(line, 'agent/src/operations/bmc-access.ts');
    expect(found).toEqual([expect.stringContaining('assumes what the others are')]);
  });

  test('lets switches, tables and comparisons of two values stand', () => {
    const lines = [
      "    case 'redfish':",
      "  [BmcProtocol.IPMI]: 'ipmi',",
      'if (driver !== store.driver) {',
    ];
    const path = 'agent/src/operations/bmc-access.ts';
    for (const line of lines) expect(bansIn(line, path)).toEqual([]);
  });
});

describe('actors', () => {
  const path = 'controlplane/src/host/life/claim.ts';

  test.each([
    "return actor.startsWith('pools/');",
    "if (claim?.by.startsWith('pools/') === true) return;",
    "run.requestedBy === 'deletion'",
    'return /^user:/.test(run.requestedBy);',
    'const isOwn = pendingPower?.by === actors.system;',
    'const actor = `token:${tokenId}`;',
    "const by = { actor: 'user:admin' };",
    'return isSystem(readActor(hold.by));',
  ])('finds %s', (line) => {
    expect(bansIn(line, path)).toHaveLength(1);
    expect(bansIn(line, 'packages/messages/src/actors.ts')).toEqual([]);
  });

  test('lets comparisons of two actors, their kinds and an empty text stand', () => {
    const lines = [
      'if (claim.by !== by.actor) return;',
      "if (actorKind(actor) === 'goal') return;",
      "if (approvedBy === '') return;",
      "const address = 'host:port';",
    ];
    for (const line of lines) expect(bansIn(line, path)).toEqual([]);
  });
});

describe('what no code may hold, tests included', () => {
  test.each([
    'export default function run() {}',
    "export * from './a.ts';",
    "test.only('a', () => {});",
    "describe.skip('a', () => {});",
    "test.skipIf(slow)('a', () => {});",
    'const a = b as any;',
    'function a(b: any) {}',
    'const a = b as unknown as C;',
    "vi.mock('./store.ts');",
    '// TODO: later',
    'const whyNotBelieved = 1;',
    '// @ts-ignore',
    '// oxlint-disable-next-line',
  ])('finds %s', (line) => {
    expect(bansIn(line, 'packages/dhcp/src/packet.test.ts')).toHaveLength(1);
  });

  test('takes the default export that vitest wants of its configuration', () => {
    const line = 'export default defineConfig({});';
    expect(bansIn(line, 'test/sim/vitest.config.ts')).toEqual([]);
    expect(bansIn(line, 'test/sim/my-vitest.config.ts')).toHaveLength(1);
  });

  test('takes a skip that gives its reason', () => {
    expect(bansIn("context.skip('not root');", 'packages/dhcp/src/a.test.ts')).toEqual([]);
  });
});
