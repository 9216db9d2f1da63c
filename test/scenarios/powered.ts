/**
 * A host on the bench whose orders a production agent carries out: its session and journal, its
 * operations, the IPMI driver with its governor, down to a BMC in memory. Time is simulated and one
 * for all of them.
 */
import { create } from '@bufbuild/protobuf';
import {
  createExecutor,
  defaultDispatcherLimits,
  noHandOffs,
  quietLog,
  RunnerDispatcher,
  testSigner,
  World,
} from '@rackwright/agent/testing';
import {
  defaultGovernorLimits,
  defaultIpmitoolOptions,
  defaultReadBackTimings,
  Governor,
} from '@rackwright/bmc';
import { type ImitatedBmc, imitatedBmc, imitatedIpmitool } from '@rackwright/bmc/conformance';
import { IpmiDriver } from '@rackwright/bmc/drivers';
import { type Bench, bench, startMs } from '@rackwright/controlplane/testing';
import { agent, HostGoal, RunPhase } from '@rackwright/messages';
import type { Exec, ExecResult } from '@rackwright/platform';
import { resultToWire } from '@rackwright/results';
import { agentSpeaks, runOf, sentBy } from './words.ts';

const nodeBusy: ExecResult = {
  kind: 'exited',
  code: 1,
  stdout: '',
  stderr:
    'Unable to send RAW command (channel=0x0 netfn=0x0 lun=0x0 cmd=0x2 rsp=0xc0): Node busy\n',
};
/** How often a look is taken at what has come. */
const lookMs = 500;

export class PoweredHost {
  readonly bmc: ImitatedBmc;
  readonly host: Bench;
  readonly world = new World();
  /** After each power off the BMC refuses to switch for so long, saying that it is busy. */
  restMs = 0;
  /** Commands that would have switched power, refused ones included. */
  switchCommands = 0;
  #busyUntilMs = 0;

  private constructor(changes: Partial<ImitatedBmc>) {
    this.bmc = imitatedBmc({ fru: ' Product Serial : HOST-1\n', ...changes });
    this.host = bench({ goal: HostGoal.MANAGEABLE });
    this.world.clock.wallAheadMs = startMs;
  }

  /** The agent is up and has the BMC's password. */
  static async open(changes: Partial<ImitatedBmc> = {}): Promise<PoweredHost> {
    const self = new PoweredHost(changes);
    const { clock } = self.world.clock.open();
    const governor = new Governor(clock, defaultGovernorLimits, () => {});
    const exec = self.#exec(imitatedIpmitool(clock, self.bmc));
    const executor = createExecutor({
      clock,
      log: quietLog,
      orders: new RunnerDispatcher({
        clock,
        log: quietLog,
        signer: testSigner(),
        operationState: () => 'unknown',
        handOffs: noHandOffs,
        limits: defaultDispatcherLimits,
      }),
      drivers: {
        firmware: 'bios',
        forget: () => undefined,
        forgetRefusals: () => undefined,
        driver: ({ address, port, cipherSuite, credential }) =>
          new IpmiDriver({
            target: {
              address,
              port,
              cipherSuite,
              user: credential.username,
              password: credential.password,
              credential: `${credential.name}@${credential.version}`,
            },
            governor,
            exec,
            clock,
            ipmitool: defaultIpmitoolOptions,
            readBack: defaultReadBackTimings,
          }),
      },
    });
    self.world.work = (operation, context) => executor.execute(operation, context);
    await self.world.bootAndConnect();
    const value = { name: 'credentials/c1', version: 1n, username: 'u', password: 'imitated' };
    self.world.controlPlane.send({
      case: 'credentialValue',
      value: create(agent.CredentialValueSchema, value),
    });
    await self.world.run(lookMs);
    return self;
  }

  /** Lets agent and host go on until no run holds the host, or for `forMs`. */
  async play(forMs = 600_000): Promise<void> {
    const { host, world } = this;
    const endMs = world.clock.nowMs + forMs;
    let effects = this.#look();
    while (world.clock.nowMs < endMs && runOf(host).phase !== RunPhase.ENDED) {
      for (const operation of sentBy(effects)) world.controlPlane.issue(operation);
      await world.run(lookMs);
      const id = host.record.operation?.operation?.id ?? '';
      const outcome = world.controlPlane.outcome(id);
      if (outcome === undefined) effects = this.#look();
      else if (outcome.kind === 'unsupported') throw new Error(outcome.problem);
      else {
        this.#tellTime();
        effects = host.report(resultToWire(outcome), id);
      }
    }
  }

  /** A request of a person, and all that follows from it. */
  async ask(request: Parameters<Bench['request']>[0]): Promise<void> {
    this.#tellTime();
    for (const operation of sentBy(this.host.request(request))) {
      this.world.controlPlane.issue(operation);
    }
    await this.play();
  }

  #look() {
    this.#tellTime();
    return this.host.apply({ kind: 'tick' });
  }

  #tellTime(): void {
    this.host.nowMs = startMs + this.world.clock.nowMs;
    agentSpeaks(this.host);
  }

  #exec(inner: Exec): Exec {
    return {
      run: async (request, signal) => {
        const at = request.args.indexOf('raw');
        const switches = request.args.slice(at + 1, at + 3).join(' ') === '0x00 0x02';
        if (!switches) return inner.run(request, signal);
        this.switchCommands += 1;
        if (this.world.clock.nowMs < this.#busyUntilMs) return nodeBusy;
        const before = this.bmc.power;
        const result = await inner.run(request, signal);
        if (before === 'on' && this.bmc.power === 'off') {
          this.#busyUntilMs = this.world.clock.nowMs + this.restMs;
        }
        return result;
      },
    };
  }
}
