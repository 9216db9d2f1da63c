import { checkConfig } from '@rackwright/platform/config';
import { defaultRpcLimits } from '@rackwright/rpc';
import { describe, expect, test } from 'vitest';
import { defaultAgentLimits } from './agents/index.ts';
import { parseConfig } from './config.ts';

const derivedOf64 = { connectionsMax: 64, connectionsForKnownMax: 16, strangersMax: 4 };

describe('the configuration', () => {
  test('an empty file has every default, visibly and frozen', () => {
    const config = parseConfig('');
    expect(config).toMatchObject({
      dataFolder: '/var/lib/rackwright',
      operators: { address: '0.0.0.0', port: 7440 },
      agents: { address: '0.0.0.0', port: 7441, advertise: 'localhost:7441' },
      names: ['localhost', '127.0.0.1', '::1'],
      store: { driver: 'sqlite', path: '/var/lib/rackwright/state.db' },
      log: { level: 'info' },
      retention: { historyDays: 400, auditDays: 400 },
      sessions: { heartbeatIntervalMs: 5_000, idleHeartbeatIntervalMs: 20_000 },
      workflows: { sweepIntervalMs: 600_000, timedOutShownMs: 600_000 },
    });
    expect(config.engine.bootTimeoutMs).toBeGreaterThan(0);
    expect(Object.isFrozen(config)).toBe(true);
    expect(Object.isFrozen(config.store)).toBe(true);
    expect(config.crashAt).toBeUndefined();
  });

  test('is read from YAML and from JSON', () => {
    expect(parseConfig('names: [cp.example]\nagents: {port: 1}').agents.advertise).toBe(
      'cp.example:1',
    );
    expect(parseConfig('{"engine": {"bootTimeoutMs": 5}}').engine.bootTimeoutMs).toBe(5);
    const { agents, operators } = parseConfig('agents: {limits: {connectionsMax: 64}}');
    expect(agents.limits).toMatchObject({ connectionsMax: 64, strangersMax: 4 });
    const ofSessions = { ...defaultAgentLimits, keepaliveTimeoutMs: 5_000 };
    expect(agents.limits).toEqual({ ...defaultRpcLimits, ...ofSessions, ...derivedOf64 });
    const ofPeople = { handshakesPerSecond: 30, keepaliveTimeoutMs: 20_000 };
    expect(operators.limits).toMatchObject({ connectionsMax: 8_192, ...ofPeople });
    expect(parseConfig('names: ["::1"]').agents.advertise).toBe('[::1]:7441');
  });

  test('describes a NATS store', () => {
    const text = 'store: {driver: nats, servers: ["a:4222"], monitors: ["http://a:8222"]}';
    expect(parseConfig(text).store).toEqual({
      driver: 'nats',
      servers: ['a:4222'],
      bucket: 'rackwright',
      replicas: 3,
      monitors: ['http://a:8222'],
    });
  });

  test.each([
    ['operator: {port: 1}', 'did you mean operators?'],
    ['engine: {bootTimeout: 1}', 'did you mean bootTimeoutMs?'],
    ['workflows: {sweepInterval: 1}', 'did you mean sweepIntervalMs?'],
    ['retention: {historyDays: 0}', 'retention.historyDays'],
    ['store: {driver: postgres}', 'store.driver has to be one of sqlite, nats'],
    ['store: {driver: nats}', 'store.servers is missing'],
    ['store: {driver: nats, servers: ["a:1"], replicas: 2}', 'store.replicas has to be 1, 3 or 5'],
    ['agents: {port: 99999}', 'agents.port has to be a whole number from 0 to 65535'],
    ['agents: {limits: {connectionsMax: 0}}', 'agents.limits.connectionsMax'],
    ['agents: {limits: {messagesPerSecnd: 1}}', 'did you mean messagesPerSecond?'],
    ['operators: {limits: {messagesPerSecond: 1}}', 'operators.limits.messagesPerSecond is no key'],
    ['agents: {limits: {handshakesMax: 3}}', 'agents.limits.handshakesMax is derived; take it out'],
    ['agents: {limits: {messagesBurst: 3}}', 'agents.limits.messagesBurst is derived'],
    ['agents: {advertise: nowhere}', 'agents.advertise has to be "host:port"'],
    ['crashAt: {}', 'crashAt'],
    ['operators: {port: 7441}', 'operators.port has to be another than agents.port'],
    ['a: [', 'neither YAML nor JSON'],
  ])('%s is refused with what would be right', (text, message) => {
    expect(() => parseConfig(text)).toThrow(message);
  });

  test('has all its problems told at once, each with its line', () => {
    const text = [
      'agents: {advertise: nowhere}',
      'names: cp.example',
      'store: {driver: nats, servers: ["a:1"], replicas: 4}',
      'secrets:',
      '  key: {}',
      'oidc:',
      '  issuer: http://idp.example',
      '  audience: rackwright',
      '  roles:',
      '    - {value: a, role: admin}',
      '    - value: b',
      '      role: viewer',
      '      racks: [r1, racks/r2]',
      '      pools: [""]',
      '  browser: {clientId: x, scopes: ["a b"]}',
      'traces: {url: "ftp://x"}',
      'operators: {port: 7441}',
      '',
    ].join('\n');
    const checked = checkConfig(text, parseConfig);
    const problems = checked.kind === 'bad' ? checked.problems : [];
    expect(problems.map(({ line, message }) => `${line} ${message}`)).toEqual([
      '1 agents.advertise has to be "host:port", as agents dial it',
      '2 names has to be a list of texts',
      '3 store.replicas has to be 1, 3 or 5',
      expect.stringMatching(
        /^5 secrets.key has to name one of file, systemdCredential and command/,
      ),
      '7 oidc.issuer has to be an https URL without query, fragment or user',
      '13 oidc.roles[1].racks[1] "racks/r2" is no id of a rack, as in "r1"',
      '14 oidc.roles[1].pools[0] has to be the name of a pool',
      '15 oidc.browser.scopes[0] "a b" is no scope of OAuth 2.0',
      expect.stringMatching(/^16 traces.url has to be an http/),
      '17 operators.port has to be another than agents.port',
    ]);
  });

  test.each([
    ['{operators: {port: 7441}, agents: {port: 74410}}', 'agents.port has to be a whole number'],
    ['{operators: [], agents: {port: 7440}}', 'operators has to be a mapping'],
    ['secrets: {key: {command: /bin/x}}', 'secrets.key.command has to be a list of texts'],
  ])('%s has no problem of a value read in place of the wrong one', (text, message) => {
    const checked = checkConfig(text, parseConfig);
    const problems = checked.kind === 'bad' ? checked.problems : [];
    expect(problems).toHaveLength(1);
    expect(problems[0]?.message).toContain(message);
  });
});
