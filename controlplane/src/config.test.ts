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
});
