/**
 * Every method that the operators' port serves × every role × every scope × what is in it and what
 * is not, against a server: let in or refused as the table says, and not a word of what is out of
 * scope in any answer.
 */
import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { ApiFailure, type Channel, createClient, Role } from '@rackwright/api';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { accessTable, type Row, trustedSignIn } from '../access/index.ts';
import { addSide, type Names, type Side, specOf, tokenFor } from './access.fixture.ts';
import { createOperatorServices } from './index.ts';
import { type Fixture, startFixture } from './rpc.fixture.ts';

let fixture: Fixture;
let names: Record<Side, Names>;

const roles = { viewer: Role.VIEWER, operator: Role.OPERATOR, admin: Role.ADMIN } as const;
const scopes = {
  everything: {},
  'a rack': { racks: ['racks/aa-rack'] },
  'a pool': { pools: ['aa-pool'] },
} as const;
type ScopeName = keyof typeof scopes;
const tokens = new Map<string, string>();

beforeAll(async () => {
  fixture = await startFixture();
  names = { aa: await addSide(fixture, 'aa'), zz: await addSide(fixture, 'zz') };
  for (const [role, value] of Object.entries(roles)) {
    for (const [scope, places] of Object.entries(scopes)) {
      const tokenId = `${role}-${scope.replace(' ', '-')}`;
      const given = { racks: [], pools: [], ...places };
      const copy = { racks: [...given.racks], pools: [...given.pools] };
      tokens.set(`${role} ${scope}`, await tokenFor(fixture, tokenId, value, copy));
    }
  }
}, 60_000);

afterAll(() => fixture.stop());

/** What the port serves, as the program itself puts it together. */
const { services } = createOperatorServices({} as never, trustedSignIn);
const methods = services.flatMap(({ service }) => service.methods);
const pathOf = (method: DescMethod) => `${method.parent.typeName}/${method.name}`;

/** What refuses for want of a right; everything else has been let through. */
const refusals = new Set([
  'ROLE_TOO_SMALL',
  'SCOPE_TOO_SMALL',
  'OUT_OF_SCOPE',
  'NOT_FOUND_IN_SCOPE',
  'NO_ACCESS_RULE',
  'TOKEN_MISSING',
  'TOKEN_WRONG',
]);

test('every method that is served has a row, and every row a method', () => {
  expect(Object.keys(accessTable).toSorted()).toEqual(methods.map(pathOf).toSorted());
});

test('the table reads as it was agreed', async () => {
  const lines = Object.entries(accessTable).map(
    ([path, { role, reach, changes, raised, pointsBmc }]) => {
      const name = Object.entries(Role).find(([, value]) => value === role)?.[0] ?? '';
      const least = role === Role.UNSPECIFIED ? 'anybody' : name.toLowerCase();
      const field = 'field' in reach ? ` ${reach.field}` : '';
      const more = raised || pointsBmc ? ' or more' : '';
      return `${path}: ${least}${more}, ${reach.kind}${field}${changes ? ', changes' : ''}`;
    },
  );
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('access.txt');
});

test('without a token only what is open answers', async () => {
  for (const method of methods) {
    const { reason } = await call(method, requestOf(method, 'aa'), undefined);
    const isOpen = accessTable[pathOf(method)]?.reach.kind === 'open';
    expect(`${pathOf(method)} ${reason === 'TOKEN_MISSING'}`).toBe(`${pathOf(method)} ${!isOpen}`);
  }
});

describe.each(Object.keys(roles) as (keyof typeof roles)[])('as %s', (role) => {
  describe.each(Object.keys(scopes) as ScopeName[])('of %s', (scope) => {
    test.each(methods.map((method) => [pathOf(method), method] as const))(
      '%s',
      async (_, method) => {
        const row = accessTable[pathOf(method)];
        if (row === undefined) throw new Error('no row');
        for (const side of ['aa', 'zz'] as const) {
          const request = requestOf(method, side);
          const token = tokens.get(`${role} ${scope}`);
          const { reason, text } = await call(method, request, token);
          const expected = expectedOf(row, roles[role], scope, side, request);
          expect(`${side}: ${refusals.has(reason) ? reason : 'let in'}`).toBe(
            `${side}: ${expected}`,
          );
          if (scope === 'everything') continue;
          // What the caller says itself is no news to it.
          const own = JSON.stringify(request, (_key, value) =>
            typeof value === 'bigint' ? String(value) : value,
          );
          if (!own.includes('zz-')) expect(text).not.toMatch(/zz-|192\.0\.2\.|:bb:/);
        }
      },
    );
  });
});

/** What the table says of the call. */
function expectedOf(
  { role, reach }: Row,
  held: Role,
  scope: ScopeName,
  side: Side,
  request: Readonly<Record<string, unknown>>,
): string {
  if (reach.kind === 'open') return 'let in';
  if (held < role) return 'ROLE_TOO_SMALL';
  if (scope === 'everything') return 'let in';
  const isRack = scope === 'a rack';
  const isIn = side === 'aa';
  switch (reach.kind) {
    case 'self':
      return 'let in';
    case 'fleet':
      return 'SCOPE_TOO_SMALL';
    case 'host':
      return isIn ? 'let in' : 'NOT_FOUND_IN_SCOPE';
    case 'rack':
      return isIn && isRack ? 'let in' : 'NOT_FOUND_IN_SCOPE';
    case 'made':
      return isIn ? 'let in' : 'OUT_OF_SCOPE';
    case 'batch':
      return isIn ? 'let in' : 'OUT_OF_SCOPE';
    case 'seen':
    case 'resource': {
      const named = JSON.stringify(request);
      const isOfRackAlone = /discoveredMachines|abandonedResources/.test(named);
      const isList = !named.includes('aa-') && !named.includes('zz-') && !hasName(request);
      if (isList || (isIn && (isRack || !isOfRackAlone))) return 'let in';
      return 'NOT_FOUND_IN_SCOPE';
    }
  }
}

function hasName(request: Readonly<Record<string, unknown>>): boolean {
  return typeof request['name'] === 'string';
}

/** A request that is complete, and comes to nothing once it is let in. */
function requestOf(method: DescMethod, side: Side): Readonly<Record<string, unknown>> {
  const has = (field: string) => method.input.fields.some(({ name }) => name === field);
  return {
    ...(has('request_id') ? { requestId: 'no id!' } : {}),
    ...(has('etag') ? { etag: 'elsewhere.1' } : {}),
    ...(has('validate_only') ? { validateOnly: true } : {}),
    ...named(method, side),
  };
}

function named(method: DescMethod, side: Side): Readonly<Record<string, unknown>> {
  const own = names[side];
  const special = specials(own, side)[`${method.parent.name}.${method.name}`];
  if (special !== undefined) return special;
  const name = byService(own)[method.parent.name];
  return name !== undefined && method.input.field['name'] !== undefined ? { name } : {};
}

function byService(own: Names): Readonly<Record<string, string>> {
  return {
    HostService: own.host,
    RackService: own.rack,
    CredentialService: own.credential,
    ErasureCertificateService: own.certificate,
    AbandonedResourceService: own.abandoned,
    TemplateService: 'templates/rackwright-diagnose',
    WorkflowService: own.workflow,
    WorkflowBatchService: own.batch,
    AccessService: 'tokens/viewer-everything',
    PlanService: own.plan,
    PoolService: own.imagePool,
  };
}

function specials(own: Names, side: Side): Readonly<Record<string, Record<string, unknown>>> {
  const host = { spec: specOf(side, 5), labels: { pool: own.pool } };
  const line = { spec: { ...specOf(side, 6), bootMacs: [] }, labels: { pool: own.pool } };
  return {
    'HostService.CreateHost': { hostId: 'other', host },
    'HostService.UpdateHost': { host: { name: own.host }, updateMask: { paths: ['labels'] } },
    'RackService.UpdateRack': { rack: { name: own.rack } },
    'RackService.CreateJoinToken': { rack: own.rack },
    'CredentialService.UpdateCredential': { credential: { name: own.credential } },
    'DiscoveryService.GetDiscoveredMachine': { name: own.machine },
    'DiscoveryService.AcceptDiscoveredMachine': { name: own.machine, hostId: 'other' },
    'DiscoveryService.DeleteDiscoveredMachine': { name: own.machine },
    'DiscoveryService.CreateExpectedHost': { expectedHostId: 'other', expectedHost: line },
    'DiscoveryService.GetExpectedHost': { name: own.line },
    'DiscoveryService.UpdateExpectedHost': {
      expectedHost: { name: own.line },
      updateMask: { paths: ['match'] },
    },
    'DiscoveryService.DeleteExpectedHost': { name: own.line },
    'HistoryService.DiffHost': { name: own.host, fromTime: { seconds: 4_000_000_000n } },
    'HistoryService.GetHostRun': { name: `${own.host}/runs/1` },
    'HistoryService.ListHostRuns': { parent: own.host },
    'HistoryService.ExplainRun': { name: `${own.host}/runs/1` },
    'PlanService.PlanRun': {
      parent: own.host,
      run: { case: 'clean', value: { steps: [{ step: '!' }] } },
    },
    'PoolService.CreatePool': { poolId: 'other', pool: { spec: { hosts: { names: [own.host] } } } },
    'PoolService.UpdatePool': { pool: { name: own.imagePool } },
    'PoolService.ListPoolHosts': { parent: own.imagePool },
    'PoolService.ListDeployHistory': { parent: own.imagePool },
    'WorkflowService.CreateWorkflow': { parent: own.host, workflowId: 'rackwright-diagnose' },
    'WorkflowService.UpdateWorkflow': { workflow: { name: own.workflow } },
    'WorkflowService.ListWorkflows': { parent: own.host },
    'WorkflowService.ListWorkflowRuns': { parent: own.workflow },
    'WorkflowBatchService.ListWorkflowBatchHosts': { parent: own.batch },
    'WorkflowService.GetWorkflowRun': { name: `${own.workflow}/runs/1` },
    'WorkflowService.ReadStepOutput': { name: `${own.workflow}/runs/1` },
    'WorkflowBatchService.CreateWorkflowBatch': {
      workflowBatchId: 'other',
      workflowBatch: {
        spec: { template: 'templates/rackwright-diagnose', hosts: { rack: own.rack } },
      },
    },
  };
}

interface Answer {
  readonly reason: string;
  /** All that was told. */
  readonly text: string;
}

async function call(
  method: DescMethod,
  request: Readonly<Record<string, unknown>>,
  token: string | undefined,
): Promise<Answer> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const client = clientOf(method.parent, fixture.channel, headers);
  const plain = (_key: string, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value;
  try {
    const told = await client(method, request);
    return { reason: '', text: JSON.stringify(told, plain) };
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    return { reason: error.error.reason, text: JSON.stringify(error.error, plain) };
  }
}

/** Answers of a stream: what comes until it has told what is there now. */
function clientOf(
  service: DescService,
  channel: Channel,
  headers: Readonly<Record<string, string>>,
) {
  const client: object = createClient(service, channel, { headers });
  return async (method: DescMethod, request: unknown): Promise<unknown> => {
    const start = Reflect.get(client, method.localName) as (request: unknown) => unknown;
    if (method.methodKind === 'unary') return start(request);
    const input = method.methodKind === 'bidi_streaming' ? once(request) : request;
    const told: unknown[] = [];
    const items = start(input) as AsyncIterable<{ readonly kind?: number }>;
    for await (const item of items) {
      told.push(item);
      if (told.length > streamedMax || item.kind === syncedKind || !('position' in item)) break;
    }
    return told;
  };
}

const streamedMax = 100;
/** SYNCED of both watches. */
const syncedKind = 3;

async function* once(request: unknown) {
  yield request;
}
