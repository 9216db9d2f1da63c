/**
 * Machines that are deployed to: each remembers what its disk holds and whether it runs it, and
 * everything stands in one log in the order in which it happened. Their agent is a box of its own.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import { agent, type HostUid, RerunClass } from '@rackwright/messages';

const fetchImage = 'deploy.fetch_image';
const writeImage = 'deploy.write_image';
const awaitImage = 'deploy.await_image';
/** What the agent of such machines says that it does itself. */
export const ownSteps: readonly agent.StepDescription[] = [fetchImage, awaitImage].map((name) =>
  create(agent.StepDescriptionSchema, { name, rerunClass: RerunClass.SAFE, abortable: true }),
);
const powerMs = 20;
const writeMs = 150;
const firstBootMs = 150;

/** One line of the machines' own log. */
export interface MachineLine {
  readonly atMs: number;
  readonly hostUid: HostUid;
  readonly act: 'off' | 'begun' | 'written' | 'serves';
  /** What its disk holds then. */
  readonly digest: string;
}

/** What a machine is by its own word. */
interface Machine {
  digest: string;
  serves: boolean;
  /** It has run an image before, or gets its first one. */
  counts: boolean;
}

export class RolloutMachines {
  readonly log: MachineLine[] = [];
  /** Most machines that were out at once, since it was set to 0. */
  mostOut = 0;
  readonly #machines = new Map<string, Machine>();

  /** Machines that run this image. */
  serving(digest: string): number {
    return [...this.#machines.values()].filter((each) => each.serves && each.digest === digest)
      .length;
  }

  /** How often each machine was written with the image. */
  timesWritten(digest: string): number[] {
    const written = this.log.filter((each) => each.act === 'begun' && each.digest === digest);
    return [...Map.groupBy(written, ({ hostUid }) => hostUid).values()].map(({ length }) => length);
  }

  /** When the last one came into service with the image. */
  lastServed(digest: string): number {
    const served = this.log.filter((each) => each.act === 'serves' && each.digest === digest);
    return Math.max(...served.map(({ atMs }) => atMs));
  }

  /** What a machine does for an operation of its agent. */
  async act({ hostUid, kind }: agent.Operation): Promise<void> {
    const machine = this.#machineOf(hostUid);
    if (kind.case === 'setPower') {
      await sleep(powerMs);
      if (kind.value.on === true) return;
      machine.serves = false;
      this.#note(hostUid, 'off', machine);
    }
    if (kind.case !== 'runStep') return;
    const { step, deployment } = kind.value;
    if (step === writeImage) await this.#write(hostUid, machine, deployment);
    if (step === awaitImage) {
      await sleep(firstBootMs);
      machine.serves = true;
      this.#note(hostUid, 'serves', machine);
    }
  }

  async #write(
    hostUid: HostUid,
    machine: Machine,
    deployment: agent.Deployment | undefined,
  ): Promise<void> {
    machine.digest = deployment?.image?.reference.split('@')[1] ?? '';
    machine.counts = true;
    this.#note(hostUid, 'begun', machine);
    await sleep(writeMs);
    this.#note(hostUid, 'written', machine);
  }

  #machineOf(hostUid: HostUid): Machine {
    const machine = this.#machines.get(hostUid) ?? { digest: '', serves: false, counts: false };
    this.#machines.set(hostUid, machine);
    return machine;
  }

  #note(hostUid: HostUid, act: MachineLine['act'], { digest }: Machine): void {
    this.log.push({ atMs: Date.now(), hostUid, act, digest });
    const out = [...this.#machines.values()].filter(({ counts, serves }) => counts && !serves);
    this.mostOut = Math.max(this.mostOut, out.length);
  }
}
