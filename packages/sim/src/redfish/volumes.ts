/**
 * RAID volumes of the simulated storage controller (DSP0268: Storage, Volume, Task). It has the
 * drives of the inventory, and gives the number of a deleted volume to the next one.
 */
import type { Clock } from '@rackwright/platform';
import { answerUnder } from './denials.ts';
import {
  json,
  noContent,
  parseObject,
  type RedfishAnswer,
  type RedfishJsonObject,
  refusal,
} from './messages.ts';
import type { RedfishFault, RedfishHabits, RedfishRaid } from './options.ts';
import { collection, link, resource } from './shapes.ts';
import { tasksPath } from './updates.ts';

/** Beside those of updates, under a path of its own. */
const taskPath = `${tasksPath}/raid`;

interface Volume {
  readonly raidType: string;
  /** Paths of its drives. */
  readonly drives: readonly string[];
}

interface Change {
  readonly startedMs: number;
  /** Absent: the volume is created. */
  readonly deleted?: number;
  readonly volume?: Volume;
}

const drivesLeast: Readonly<Record<string, number>> = {
  RAID0: 1,
  RAID1: 2,
  RAID5: 3,
  RAID10: 4,
};

export class Volumes {
  readonly #clock: Clock;
  readonly #habits: RedfishHabits;
  readonly #raid: RedfishRaid | undefined;
  readonly #storagePath: string;
  readonly #volumes = new Map<number, Volume>();
  #change: Change | undefined;
  /** The change of the task, which outlives it. */
  #last: Change | undefined;
  #orders = 0;
  /** Its task went with a restart. */
  #hasForgotten = false;

  constructor(clock: Clock, habits: RedfishHabits, raid: RedfishRaid | undefined, path: string) {
    this.#clock = clock;
    this.#habits = habits;
    this.#raid = raid;
    this.#storagePath = path;
    for (const [at, { raidType, drives }] of (raid?.volumes ?? []).entries()) {
      const paths = drives.map((number) => `${path}/Drives/${number}`);
      this.#volumes.set(at + 1, { raidType, drives: paths });
    }
  }

  /** How often a volume was ordered to be created or deleted. */
  orders(): number {
    return this.#orders;
  }

  /** "RAID1 1+2", in the order of their numbers. */
  layout(fault: RedfishFault): readonly string[] {
    this.#settle(fault);
    const numbers = (drives: readonly string[]) =>
      drives.map((one) => Number(one.split('/').at(-1))).sort((one, other) => one - other);
    return this.#sorted().map(
      ([, { raidType, drives }]) => `${raidType} ${numbers(drives).join('+')}`,
    );
  }

  /** What the storage says of them. */
  ofStorage(): RedfishJsonObject {
    const raid = this.#raid;
    if (raid === undefined) return {};
    return {
      StorageControllers: [
        { MemberId: '0', SupportedRAIDTypes: raid.raidTypes ?? Object.keys(drivesLeast) },
      ],
      Volumes: link(this.#listPath()),
    };
  }

  /** Whether it drops half-way now. */
  dropsNow(fault: RedfishFault): boolean {
    if (fault.kind !== 'updateRestarts' || this.#hasForgotten || this.#share() < 0.5) return false;
    this.#hasForgotten = true;
    return true;
  }

  /** Undefined: it is about something else, or only reads. */
  respond(path: string, { method, body }: { method: string; body: string }, fault: RedfishFault) {
    const list = this.#listPath();
    const number = Number(path.slice(list.length + 1));
    const creates = path === list && method === 'POST';
    const deletes = path === `${list}/${number}` && method === 'DELETE';
    if (this.#raid === undefined || (!creates && !deletes)) return undefined;
    this.#settle(fault);
    this.#orders += 1;
    if (fault.kind === 'volumesRefused') {
      return refusal(400, 'PropertyNotWritable', 'the controller is locked');
    }
    if (this.#change !== undefined) {
      return refusal(409, 'ResourceInUse', 'the controller works on another volume');
    }
    const wanted = creates ? this.#wanted(parseObject(body) ?? {}) : undefined;
    if (wanted !== undefined && 'status' in wanted) return wanted;
    if (deletes && !this.#volumes.has(number)) {
      return refusal(404, 'ResourceMissingAtURI', 'there is no such volume');
    }
    if (fault.kind === 'yesButNothing') return noContent();
    const startedMs = this.#clock.suspendAwareMs();
    this.#hasForgotten = false;
    this.#change = {
      startedMs,
      ...(wanted === undefined ? { deleted: number } : { volume: wanted }),
    };
    this.#last = this.#change;
    return answerUnder(fault, this.#answer(fault));
  }

  /** Undefined: there is no such resource. */
  at(path: string, fault: RedfishFault): RedfishJsonObject | undefined {
    if (this.#raid === undefined) return undefined;
    if (path === taskPath) return this.#taskShown(fault);
    this.#settle(fault);
    const list = this.#listPath();
    if (path === list) return this.#list();
    const number = Number(path.slice(list.length + 1));
    const volume = path === `${list}/${number}` ? this.#volumes.get(number) : undefined;
    if (volume === undefined) return undefined;
    return {
      ...resource('Volume.v1_6_0.Volume', path, `${number}`, `Volume ${number}`),
      RAIDType: volume.raidType,
      Links: { Drives: volume.drives.map(link) },
      Status: { State: 'Enabled', Health: 'OK' },
    };
  }

  #listPath(): string {
    return `${this.#storagePath}/Volumes`;
  }

  #list(): RedfishJsonObject {
    const list = this.#listPath();
    const members = this.#sorted().map(([number]) => `${list}/${number}`);
    const times = this.#raid?.applyTimes;
    const support = { '@Redfish.OperationApplyTimeSupport': { SupportedValues: times ?? [] } };
    return { ...collection('Volume', list, members), ...(times === undefined ? {} : support) };
  }

  #sorted(): [number, Volume][] {
    return [...this.#volumes].sort(([one], [other]) => one - other);
  }

  #wanted(body: RedfishJsonObject): Volume | RedfishAnswer {
    const { RAIDType: raidType, Links: links, Name: name } = body;
    if (this.#habits.volumeNames === 'needed' && typeof name !== 'string') {
      return refusal(400, 'PropertyMissing', 'Name is required');
    }
    if (this.#habits.volumeNames === 'refused' && name !== undefined) {
      return refusal(400, 'PropertyNotWritable', 'Name is read-only');
    }
    const listed = links as { Drives?: readonly { '@odata.id'?: string }[] } | undefined;
    const drives = (listed?.Drives ?? []).flatMap((one) => one['@odata.id'] ?? []);
    const least = typeof raidType === 'string' ? drivesLeast[raidType] : undefined;
    if (typeof raidType !== 'string' || least === undefined || drives.length < least) {
      return refusal(400, 'PropertyValueNotInList', 'RAIDType does not fit the drives');
    }
    const used = [...this.#volumes.values()].flatMap((one) => one.drives);
    if (drives.some((one) => used.includes(one))) {
      return refusal(400, 'ResourceInUse', 'a drive is part of another volume');
    }
    return { raidType, drives };
  }

  #answer(fault: RedfishFault): RedfishAnswer {
    switch (this.#habits.volumeAnswers) {
      case 'nothing':
        return noContent();
      case 'location':
        return json(202, {}, { location: taskPath });
      case 'task':
        return json(202, this.#task(fault));
    }
  }

  #taskShown(fault: RedfishFault): RedfishJsonObject | undefined {
    if (this.#last === undefined || this.#hasForgotten) return undefined;
    const isOthers = fault.kind === 'tasksReordered' && this.#share() >= 0.5;
    if (!isOthers) return this.#task(fault);
    return { ...this.#task(fault), StartTime: 'earlier', TaskState: 'Completed' };
  }

  #task(fault: RedfishFault): RedfishJsonObject {
    const share = this.#share();
    this.#settle(fault);
    const fails = fault.kind === 'volumesFail' && share >= 0.5;
    return {
      ...resource('Task.v1_4_0.Task', taskPath, 'raid', 'Volumes'),
      StartTime: new Date(this.#last?.startedMs ?? 0).toISOString(),
      TaskState: fails ? 'Exception' : share >= 1 ? 'Completed' : 'Running',
      PercentComplete: Math.min(Math.floor(share * 100), 100),
      Messages: fails ? [{ Message: 'a drive is bad' }] : [],
    };
  }

  /** 1: over. */
  #share(): number {
    const change = this.#last;
    if (change === undefined) return 0;
    return (this.#clock.suspendAwareMs() - change.startedMs) / this.#habits.volumeMs;
  }

  #settle(fault: RedfishFault): void {
    const change = this.#change;
    if (change === undefined || this.#share() < 1) return;
    this.#change = undefined;
    const isWithout = fault.kind === 'volumesLie' || fault.kind === 'volumesFail';
    if (isWithout) return;
    if (change.deleted !== undefined) this.#volumes.delete(change.deleted);
    if (change.volume === undefined) return;
    let number = 1;
    while (this.#volumes.has(number)) number += 1;
    // Some take the drives that they like.
    const drives = fault.kind === 'volumesElsewhere' ? [] : change.volume.drives;
    this.#volumes.set(number, { ...change.volume, drives });
  }
}
