/**
 * Secrets are planted in a rack that really works, errors are provoked, and then they are looked
 * for everywhere: arguments and environments of processes, logs, answers of every reading method,
 * refusals, and every file that the programs keep.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import * as api from '@rackwright/messages';
import { BmcReadKind, HostGoal, HostState, Role, RunKind, RunPhase } from '@rackwright/messages';
import { connect, operatorClients } from '@rackwright/rpc';
import { expect, test } from 'vitest';
import { programOf } from './programs.ts';
import { eventually, Rack } from './rack.ts';
import { ProcessWatch, SecretSearch, secret, sweepReads } from './secrets-search.ts';

const run = promisify(execFile);
const [controlPlaneProgram, agentProgram] = [programOf('controlplane'), programOf('agent')];
const command = programOf('rackwright');

/** IPMI takes at most 20 bytes. */
const bmcSecret = () => `+/&${randomBytes(8).toString('hex')}`;

const machineOf = (n: number) => ({
  name: `h${n}`,
  bmcAddress: `127.0.0.${40 + n}`,
  mac: `52:54:00:00:01:0${n}`,
  uuid: `0${n}02030405060708090a0b0c0d0e0f10`,
  serial: `SN-${n}`,
  disks: [],
});

const template = (webhook: string, image: string) => `
steps:
  - name: register
    script: 'echo "token $TOKEN of $WHO"; printf %s "$TOKEN" | base64 -w 0; exit 3'
    environment: { TOKEN: { credential: hub }, WHO: { credential: hub, part: username } }
    destructive: false
    onFailure: continue
  - name: tell
    webhook:
      url: ${webhook}
      headers: { authorization: { credential: hooks, prefix: "Bearer " } }
    onFailure: continue
  - name: pull
    command: { image: ${image}, environment: { TOKEN: { credential: hub } } }
    destructive: false
    timeout: 20s
    onFailure: continue
`;

/** Tells whoever calls what it was sent, as some receivers do in errors. */
async function startReceiver() {
  const heard: string[] = [];
  const events: string[] = [];
  const server = createServer((request, response) => {
    if (request.url === '/hook/events') {
      request.setEncoding('utf8').on('data', (part: string) => events.push(part));
      // So that they are dead letters, which can be read.
      request.on('end', () => response.writeHead(422).end());
      return;
    }
    heard.push(request.headers.authorization ?? '');
    response.statusCode = 403;
    response.end(`you sent ${request.headers.authorization}`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { heard, events, url: `http://127.0.0.1:${port}/hook`, close: () => server.close() };
}

/** What the stages of the test share. */
interface Scene {
  readonly rack: Rack;
  readonly planted: Record<string, string | Uint8Array>;
  readonly all: SecretSearch;
  readonly keys: string;
  readonly receiver: Awaited<ReturnType<typeof startReceiver>>;
  readonly adminToken: string;
  readonly joinToken: string;
  readonly operatorToken: string;
}

const lineOf = (bytes: Uint8Array) => `${Buffer.from(bytes).toString('base64')}\n`;
const keyFileIn = (keys: string) => join(keys, 'kek');
const runName = 'hosts/h1/workflows/secrets/runs/1';

function plant() {
  return {
    ...{ bmc: bmcSecret(), wrong: bmcSecret(), registry: secret('registry') },
    // A header takes ASCII only.
    ...{ hub: secret('hub'), hooks: secret('hooks').replace('é', 'e').replace('"', '~') },
    signing: `whsec_${randomBytes(32).toString('base64')}`,
    oidc: `eyJ${randomBytes(40).toString('base64url')}.e30.x`,
    ...{ key: randomBytes(32), nextKey: randomBytes(32) },
  };
}

test('no secret stands anywhere but sealed, or in the file that is its own', async () => {
  const keys = mkdtempSync(join(tmpdir(), 'rackwright-kek-'));
  const planted = plant();
  writeFileSync(keyFileIn(keys), lineOf(planted.key), { mode: 0o600 });
  const receiver = await startReceiver();
  const rack = await Rack.start({
    machines: [machineOf(1)],
    goal: HostGoal.MANAGEABLE,
    bmcPassword: planted.bmc,
    controlplane: { log: { level: 'debug' }, secrets: { key: { file: keyFileIn(keys) } } },
    agent: { log: { level: 'debug' } },
  });
  const joining = new Set<number>();
  const programs = () => [rack.pidOf('controlplane'), rack.pidOf('agent'), ...joining];
  const search = new SecretSearch(planted);
  const early = new ProcessWatch(search, programs);
  let watch = early;
  try {
    const scene = await plantTokens(rack, { planted, keys, receiver });
    const { all } = scene;
    early.stop();
    watch = new ProcessWatch(all, programs);
    await keepCredentials(scene);
    await runWorkflow(scene);
    await useWrongPassword(scene);
    await showWrongTokens(scene, joining);
    await changeKey(scene);
    const tar = await backUp(scene);
    await searchAnswers(scene);
    await searchSupportBundle(scene);
    searchFiles(scene, tar);
    const tools = [...early.seen, ...watch.seen].filter((line) => line.includes('ipmitool'));
    expect(tools.join('\n')).toContain('-f /dev/stdin');
    expect([...watch.seen].filter((line) => / join \S+ - /.test(line))).not.toEqual([]);
    expect([...search.findings, ...all.findings]).toEqual([]);
  } finally {
    early.stop();
    watch.stop();
    receiver.close();
    await rack.stop();
    rmSync(keys, { recursive: true });
  }
});

async function plantTokens(
  rack: Rack,
  scene: Pick<Scene, 'planted' | 'keys' | 'receiver'>,
): Promise<Scene> {
  const { racks, access } = rack.clients;
  const { planted } = scene;
  const data = join(rack.folder, 'controlplane');
  const adminToken = readFileSync(join(data, 'identity/admin.token'), 'utf8').trim();
  await racks.createRack({ rackId: 'r2' });
  const { token: joinToken } = await racks.createJoinToken({ rack: 'racks/r2' });
  const made = await access.createToken({
    tokenId: 'reader',
    token: {
      role: Role.VIEWER,
      purpose: 'to be looked for',
      expireTime: timestampFromMs(Date.now() + 3_600_000),
    },
  });
  Object.assign(planted, {
    admin: adminToken,
    join: joinToken.split('.').at(-1) ?? '',
    operator: made.secret.split('.').at(-1) ?? '',
  });
  const all = new SecretSearch(planted);
  for (const [name, value] of Object.entries(planted))
    expect(value.length, name).toBeGreaterThan(12);
  const operatorToken = made.secret;
  return { ...scene, rack, all, adminToken, joinToken, operatorToken };
}

/** Credentials and what may use them, with refusals in between. */
async function keepCredentials(scene: Scene): Promise<void> {
  const { rack, planted, all, receiver } = scene;
  const { credentials, fleet, templates } = rack.clients;
  // Credentials, also by the command, with refusals in between.
  for (const id of ['wrong', 'registry', 'hub', 'hooks', 'signing']) {
    const password = String(planted[id]);
    await credentials.createCredential({
      credentialId: id,
      credential: { username: 'root', password },
    });
    const twice = credentials.createCredential({
      credentialId: id,
      credential: { username: 'root', password: `${password}\n` },
    });
    all.text('refusal', await twice.then(String, String));
  }
  await fleet.updateFleet({
    fleet: {
      name: 'fleet',
      spec: {
        templates: {
          imageRepositories: ['127.0.0.1:1/tools/*'],
          plainHttpRegistries: ['127.0.0.1:1'],
          registryCredentials: { '127.0.0.1:1': 'credentials/registry' },
          webhookUrls: [receiver.url],
          credentials: ['credentials/hub', 'credentials/hooks'],
        },
      },
    },
    updateMask: { paths: ['spec.templates'] },
  });
  await rack.clients.eventSinks.createEventSink({
    eventSinkId: 'all',
    eventSink: {
      spec: {
        target: {
          case: 'webhook',
          value: { url: `${receiver.url}/events`, credential: 'credentials/signing' },
        },
      },
    },
  });
  const image = `127.0.0.1:1/tools/x@sha256:${'0a'.repeat(32)}`;
  await templates.createTemplate({
    templateId: 'secrets',
    template: { source: template(receiver.url, image) },
  });
}

/** Its script, its webhook and its image each get a secret. */
async function runWorkflow(scene: Scene): Promise<void> {
  const { rack, planted, all, receiver } = scene;
  const { hosts, workflows } = rack.clients;
  await rack.untilHost(
    'h1',
    'known',
    ({ status }) => status?.state === HostState.MANAGEABLE && status.run?.phase === RunPhase.ENDED,
    90_000,
  );
  await workflows.createWorkflow({ parent: 'hosts/h1', workflowId: 'secrets' });
  // Its registry is not there: that is tried again until somebody has enough of it.
  await rack.untilHost(
    'h1',
    'at its image',
    ({ status }) => status?.run?.steps[status.run.currentStep]?.title === 'pull',
    90_000,
  );
  await hosts.abortRun({ name: 'hosts/h1', reason: 'seen enough' });
  await rack.untilHost(
    'h1',
    'done with its workflow',
    ({ status }) => status?.run?.kind === RunKind.WORKFLOW && status.run.phase === RunPhase.ENDED,
    60_000,
  );
  await eventually('the event that its run has ended', () => {
    expect(receiver.events.join()).toContain('rackwright.v1.RunEnded');
  });
  all.text('events', receiver.events.join());
  // They were really used.
  expect(receiver.heard).toContain(`Bearer ${String(planted['hooks'])}`);
  const outputs: string[] = [];
  for (const step of ['register', 'tell']) {
    const pieces: Uint8Array[] = [];
    for await (const { content } of workflows.readStepOutput({ name: runName, step })) {
      pieces.push(content);
    }
    all.bytes(`output of ${step}`, Buffer.concat(pieces));
    outputs.push(Buffer.concat(pieces).toString());
  }
  expect(outputs[0]).toBe('token [secret] of [secret]\n[secret]');
  expect(outputs[1]).toContain('you sent Bearer [secret]');
}

/** The BMC refuses it. */
async function useWrongPassword(scene: Scene): Promise<void> {
  const { hosts } = scene.rack.clients;
  await hosts.updateHost({
    host: {
      name: 'hosts/h1',
      spec: { bmc: { address: '127.0.0.41', credential: 'credentials/wrong' } },
    },
    updateMask: { paths: ['spec.bmc.credential'] },
  });
  await eventually('the wrong password to be told', async () => {
    const { status } = await hosts.getHost({ name: 'hosts/h1' });
    if (!/credential|password|refus/i.test(status?.lastError?.failure?.message ?? '')) {
      throw new Error(JSON.stringify(status?.lastError?.failure?.message ?? 'no error'));
    }
  });
}

/** Refused by the API, and at a second agent's enrolment. */
async function showWrongTokens(scene: Scene, watched: Set<number>): Promise<void> {
  const { rack, planted, all, keys, adminToken, joinToken, operatorToken } = scene;
  const { RACKWRIGHT_SERVER: server = '', RACKWRIGHT_CA_FILE: caFile = '' } =
    rack.commandEnvironment;
  const channel = connect({ target: server, caPem: readFileSync(caFile, 'utf8') });
  for (const token of [String(planted['oidc']), operatorToken, `${adminToken}x`]) {
    const clients = operatorClients(channel, token);
    all.text('refusal', await clients.racks.deleteRack({ name: 'racks/r1' }).then(String, String));
  }
  channel.close();
  const other = join(keys, 'other.json');
  const config = JSON.parse(readFileSync(join(rack.folder, 'agent.json'), 'utf8')) as object;
  // It joins once; a second time, in a folder of its own, it is refused.
  for (const stateFolder of [join(keys, 'other'), join(keys, 'again')]) {
    writeFileSync(other, JSON.stringify({ ...config, stateFolder }));
    const args = ['join', server, '-', '--config', other];
    const joining = run(process.execPath, [agentProgram, ...args]);
    watched.add(joining.child.pid ?? 0);
    joining.child.stdin?.end(`${joinToken}\n`);
    const said = await joining.then(({ stdout, stderr }) => stdout + stderr, String);
    expect(said).toMatch(stateFolder.endsWith('other') ? /joined racks\/r2/ : /token/);
    all.text('joining', said);
  }
  expect(all.folder(join(keys, 'other'))).toBeGreaterThan(1);
  if (existsSync(join(keys, 'again'))) all.folder(join(keys, 'again'));
}

/** What is given to others. */
async function searchSupportBundle({ rack, keys, all }: Scene): Promise<void> {
  const path = join(keys, 'support.json.gz');
  await run(process.execPath, [command, 'support-bundle', '-f', path], {
    env: rack.commandEnvironment,
  });
  const text = gunzipSync(readFileSync(path));
  all.bytes('support bundle', text);
  const told = JSON.parse(text.toString()) as Readonly<Record<string, object>>;
  expect(JSON.stringify(told['audit'])).toContain('hosts/h1');
  expect(JSON.stringify(told['fleet'])).toContain('127.0.0.1:1/tools/*');
  expect(Object.values(told).filter((part) => 'couldNotBeRead' in part)).toEqual([]);
}

/** Another secrets key, and the first one gone. */
async function changeKey(scene: Scene): Promise<void> {
  const { rack, keys, planted } = scene;
  const { hosts } = rack.clients;
  const keyFile = keyFileIn(keys);
  const [key, nextKey] = [planted['key'], planted['nextKey']].map((each) =>
    Buffer.from(each ?? ''),
  );
  if (key === undefined || nextKey === undefined) throw new Error('no keys');
  writeFileSync(keyFile, lineOf(nextKey) + lineOf(key), { mode: 0o600 });
  const { stdout: rotated } = await run(process.execPath, [command, 'secrets', 'rotate'], {
    env: rack.commandEnvironment,
  });
  expect(rotated).toMatch(/^under [0-9a-f]{16} +no records$/m);
  expect(rotated).toMatch(/^keep +key [0-9a-f]{16} elsewhere/m);
  writeFileSync(keyFile, lineOf(nextKey), { mode: 0o600 });
  await rack.pause('controlplane');
  await rack.resume('controlplane');
  const request = {
    host: {
      name: 'hosts/h1',
      spec: { bmc: { address: '127.0.0.41', credential: 'credentials/bmc' } },
    },
    updateMask: { paths: ['spec.bmc.credential'] },
  };
  // The connection of before may be noticed to be gone only by the call that uses it.
  await eventually('the new process to take a change', () => hosts.updateHost(request));
  await rack.untilHost(
    'h1',
    'proved with its password again',
    ({ status }) => {
      return status?.run?.phase === RunPhase.ENDED && status.lastError === undefined;
    },
    180_000,
  );
}

/** Answers where it is. */
async function backUp({ rack, all }: Scene): Promise<string> {
  const tar = join(rack.folder, 'backup.tar');
  const args = ['backup', '--config', join(rack.folder, 'controlplane.json'), '--to', tar];
  const backup = await run(process.execPath, [controlPlaneProgram, ...args]);
  expect(backup.stdout).toContain('The key of secrets is not in it');
  all.text('backup', backup.stdout + backup.stderr);
  return tar;
}

/** What every reading method answers, and what the command shows. */
async function searchAnswers(scene: Scene): Promise<void> {
  const { rack, all } = scene;
  const services = Object.values(api).filter(isService);
  const clients = operatorClientsByService(rack);
  const { createTime } = await rack.clients.hosts.getHost({ name: 'hosts/h1' });
  const silent = await sweepReads(
    all,
    services.flatMap((service) => {
      const client = clients.get(service.typeName);
      return client === undefined ? [] : [{ service, client }];
    }),
    [
      { name: runName, step: 'register' },
      { parent: 'hosts/h1', run: { case: 'clean', value: {} } },
      { name: 'hosts/h1', kind: BmcReadKind.FIRMWARE },
      ...[1, 2, 3].map((number) => ({ name: `hosts/h1/runs/${number}` })),
      {
        name: 'hosts/h1',
        ...(createTime === undefined ? {} : { fromTime: createTime }),
        toTime: timestampFromMs(Date.now()),
      },
    ],
  );
  // Nothing of these kinds is there.
  expect(silent.filter((name) => !notHere.has(name))).toEqual([]);
  for (const text of [
    'get credential -o yaml',
    'get host h1 -o yaml',
    'host history h1',
    'audit list',
  ]) {
    const { stdout, stderr } = await run(process.execPath, [command, ...text.split(' ')], {
      env: rack.commandEnvironment,
    });
    expect(stdout.length, text).toBeGreaterThan(40);
    all.text(text, stdout + stderr);
  }
}

function searchFiles({ rack, all }: Scene, tar: string): void {
  const data = join(rack.folder, 'controlplane');
  const allowed = { 'identity/admin.token': ['admin'] };
  expect(all.folder(data, allowed)).toBeGreaterThan(6);
  expect(all.folder(join(rack.folder, 'agent'))).toBeGreaterThan(2);
  for (const { folder } of rack.machines) all.folder(folder, { password: ['bmc'] });
  all.bytes('backup.tar', readFileSync(tar), ['admin']);
  for (const name of ['controlplane.log', 'agent.log']) {
    const log = readFileSync(join(rack.folder, name));
    expect(log.length).toBeGreaterThan(500);
    all.bytes(name, log);
  }
}

/** Reading methods of things that this rack has none of. */
const notHere = new Set([
  'AbandonedResourceService.GetAbandonedResource',
  'DiscoveryService.GetDiscoveredMachine',
  'DiscoveryService.GetExpectedHost',
  'ErasureCertificateService.GetErasureCertificate',
  'ErasureCertificateService.GetErasureDocument',
  'HostService.WatchHostConsole',
  'PlanService.GetPlan',
  'PoolService.ExplainPool',
  'PoolService.GetPool',
  'PoolService.ListDeployHistory',
  'PoolService.ListPoolHosts',
  'RackService.ListPrefetchedImages',
  'PoolService.PlanRollout',
  'WorkflowBatchService.GetWorkflowBatch',
  'WorkflowBatchService.ListWorkflowBatchHosts',
]);

type Service = typeof api.HostService;

function isService(value: unknown): value is Service {
  return typeof value === 'object' && value !== null && (value as Service).kind === 'service';
}

/** The client of each service that operators call. */
function operatorClientsByService({ clients }: Rack): ReadonlyMap<string, object> {
  const own = Object.values(clients).filter((each) => typeof each === 'object');
  const byService = new Map<string, object>();
  for (const service of Object.values(api).filter(isService)) {
    const [first] = service.methods;
    const client = own.find((each) => first !== undefined && first.localName in each);
    if (client !== undefined) byService.set(service.typeName, client);
  }
  return byService;
}
