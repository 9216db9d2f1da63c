/**
 * A control plane's operators on simulated time: the production services of one replica, called in
 * process, with the loops of workflows and batches; the agent's side is spoken by the test.
 */
import { create } from '@bufbuild/protobuf';
import { quietLog } from '@rackwright/agent/testing';
import { type CommandIo, runCli } from '@rackwright/cli';
import {
  createOperatorServices,
  createWorkflowParts,
  StepLogs,
  trustedSignIn,
} from '@rackwright/controlplane';
import type { Fixture } from '@rackwright/controlplane/testing';
import {
  ApiFailure,
  agent,
  asReplicaId,
  BmcEndpointSchema,
  type FailureName,
  failureTypeOf,
  HostGoal,
  type HostId,
  HostState,
  RerunClass,
  TransientCause,
  type WorkflowRun,
} from '@rackwright/messages';
import { type Channel, localChannel, type OperatorClients, operatorClients } from '@rackwright/rpc';
import { type FaultOf, Replica, Site } from './replica.ts';

/** What the agent of the rack can do by itself. */
export const bmcStep = 'management.clear_event_log';

const agentSteps = [
  create(agent.StepDescriptionSchema, {
    name: bmcStep,
    rerunClass: RerunClass.SAFE,
    destructive: false,
  }),
];

/** One template step of a name, done by the agent. */
export const bmcTemplate = (...names: string[]) =>
  `steps:\n${names.map((name) => `  - { name: ${name}, bmc: ${bmcStep} }\n`).join('')}`;

/** One replica with its counter. */
export class Office {
  readonly site: Site;
  readonly replica: Replica;
  readonly clients: OperatorClients;
  readonly #channel: Channel;
  readonly #stop: () => void;

  private constructor(site: Site, replica: Replica, channel: Channel, stop: () => void) {
    this.site = site;
    this.replica = replica;
    this.#channel = channel;
    this.clients = operatorClients(channel, 'token');
    this.#stop = stop;
  }

  /** A rack whose hosts are manageable and stay so, and whose agent is there. */
  static async open(hosts = 1, faultOf?: FaultOf): Promise<Office> {
    const site = await Site.open({ hosts });
    for (const hostId of site.hostIds()) await settle(site, hostId);
    const office = await Office.start(site, 'a', faultOf);
    await office.hello();
    return office;
  }

  /** Another control plane process over the same store; its agent is not there yet. */
  static async start(site: Site, replicaId: string, faultOf?: FaultOf): Promise<Office> {
    const replica = await Replica.start(site, replicaId, faultOf);
    const { store, clock, hosts, following, fleetView } = replica;
    const shared = { store, clock, hosts, random: site.random, log: quietLog };
    const pace = { resyncIntervalMs: 60_000, retryDelayMs: 1_000 };
    const parts = createWorkflowParts({ ...shared, ...pace, following, fleetView });
    await parts.start();
    await site.run(0);
    const { services } = createOperatorServices(
      {
        ...shared,
        ...parts,
        fleetView,
        pools: { reconcile: async () => undefined, known: () => new Map() },
        discovery: {
          accept: async () => undefined,
          listedIn: () => 0,
          remarksOf: () => [],
          wake: () => undefined,
          wakeRack: () => undefined,
        },
        identity: {} as never,
        rackKeys: { rackOf: () => undefined, noteWritten: () => undefined },
        agentEndpoint: 'sim:7441',
        stepLogs: new StepLogs(),
        replicaId: asReplicaId(replicaId),
        onCall: () => undefined,
      },
      trustedSignIn,
    );
    const channel = localChannel(services);
    return new Office(site, replica, channel, () => parts.stop());
  }

  hello(operations: agent.JournalledOperation[] = [], generation = 1n): Promise<void> {
    return this.replica.hello(operations, agentSteps, generation);
  }

  /** The process dies. */
  kill(): void {
    this.#stop();
    this.replica.kill();
  }

  /** Lets time pass, the agent being heard all the while. */
  async pass(durationMs: number): Promise<void> {
    const sliceMs = 60_000;
    for (let leftMs = durationMs; leftMs > 0; leftMs -= sliceMs) {
      await this.site.run(Math.min(leftMs, sliceMs));
      await this.replica.heartbeat();
    }
    await this.site.run(0);
  }

  async template(templateId: string, source: string): Promise<void> {
    await this.clients.templates.createTemplate({ templateId, template: { source } });
  }

  /** The latest run of a workflow, as people see it. */
  async run(hostId: HostId, templateId: string): Promise<WorkflowRun | undefined> {
    const name = `hosts/${hostId}/workflows/${templateId}`;
    return (await this.clients.workflows.getWorkflow({ name })).status?.run;
  }

  create(hostId: HostId, templateId: string, spec: object = {}, requestId = '') {
    return this.clients.workflows.createWorkflow({
      parent: `hosts/${hostId}`,
      workflowId: templateId,
      workflow: { spec },
      requestId,
    });
  }

  again(hostId: HostId, templateId: string, requestId = '') {
    const name = `hosts/${hostId}/workflows/${templateId}`;
    return this.clients.workflows.runWorkflow({ name, requestId });
  }

  update(hostId: HostId, templateId: string, spec: object, ...paths: string[]) {
    const name = `hosts/${hostId}/workflows/${templateId}`;
    return this.clients.workflows.updateWorkflow({
      workflow: { name, spec },
      updateMask: { paths },
    });
  }

  /** Types a command: its exit code, and what it says. */
  async type(
    line: string,
    over: Pick<Fixture, 'channel' | 'token'> = { channel: this.#channel, token: 'text' },
  ): Promise<{ readonly code: number; readonly output: string }> {
    let output = '';
    const write = (text: string) => {
      output += text;
    };
    const world: CommandIo = {
      environment: {
        RACKWRIGHT_SERVER: 'sim:7440',
        RACKWRIGHT_TOKEN_FILE: '/token',
        RACKWRIGHT_CA_FILE: '/ca',
      },
      homeFolder: '/home/operator',
      clock: this.replica.clock,
      random: { fraction: () => 0 },
      readFile: async (path) =>
        path.startsWith('/home') ? undefined : new TextEncoder().encode(over.token),
      writeFile: async () => undefined,
      writePrivateFile: async () => undefined,
      removeFile: async () => undefined,
      readInput: async () => undefined,
      askHidden: async () => undefined,
      connect: () => over.channel,
      out: { write, columns: 120 },
      err: { write, columns: 120 },
      signal: new AbortController().signal,
    };
    const code = await runCli(line.split(' '), world);
    return { code, output };
  }

  /** What was ordered for a host's workflows, in order. */
  ordered(hostId: HostId): agent.Operation[] {
    const uid = this.site.record(hostId)?.host?.uid;
    return this.replica.operations().filter(({ hostUid }) => hostUid === uid);
  }

  /** The operation that was ordered last for a host. */
  last(hostId: HostId): agent.Operation {
    const operation = this.ordered(hostId).at(-1);
    if (operation === undefined) throw new Error(`nothing was ordered for ${hostId}`);
    return operation;
  }

  /** Reports how the operation that was ordered last for a host ended. */
  async report(hostId: HostId, result: agent.Report['result']): Promise<void> {
    await this.replica.report(this.last(hostId), result);
    await this.site.run(1_000);
  }
}

/** The host is verified already, and its goal asks for no more. */
async function settle(site: Site, hostId: HostId): Promise<void> {
  const record = site.record(hostId);
  const { spec, status } = record?.host ?? {};
  if (record === undefined || spec?.bmc === undefined || status === undefined) {
    throw new Error(`${hostId} is not there`);
  }
  spec.goal = HostGoal.MANAGEABLE;
  status.state = HostState.MANAGEABLE;
  record.verifiedBmc = create(BmcEndpointSchema, spec.bmc);
  await site.putRecord(hostId, record);
}

/** The words of the refusal that a call ends with. */
export async function refusal(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    if (error instanceof ApiFailure) return `${error.error.kind}: ${error.message}`;
    throw error;
  }
  return 'accepted';
}

export const done: agent.Report['result'] = {
  case: 'complete',
  value: create(agent.CompleteSchema, {}),
};

export function failedWith(type: FailureName, message: string): agent.Report['result'] {
  return {
    case: 'failed',
    value: create(agent.FailedSchema, { type: failureTypeOf(type), message }),
  };
}

export const silentBmc: agent.Report['result'] = {
  case: 'transientError',
  value: create(agent.TransientErrorSchema, {
    cause: TransientCause.UNREACHABLE,
    message: 'connect timed out',
  }),
};

/** A template of one script. */
export const scriptTemplate = (script: string, more = '') =>
  `steps:\n  - name: it\n    script: "${script}"\n    destructive: false\n${
    more === '' ? '' : `    ${more}\n`
  }`;

/** Switches the host off and on into the runner, which reports: up to the step that needs it. */
export async function bootRunner(office: Office, hostId: HostId): Promise<void> {
  await office.report(hostId, done);
  const boot = office.last(hostId);
  await office.report(hostId, done);
  const { id: bootOperationId, hostUid } = boot;
  const session = { runnerSession: `s-${bootOperationId}`, bootId: `b-${bootOperationId}` };
  const runnerReady = { hostUid, bootOperationId, ...session };
  const value = create(agent.HostUpdatedSchema, { observations: { runnerReady } });
  const seen = create(agent.OperationSchema, { hostUid });
  await office.replica.report(seen, { case: 'hostUpdated', value });
  await office.site.run(1_000);
}
