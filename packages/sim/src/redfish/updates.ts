/**
 * Updates of the simulated BMC (DSP0268: UpdateService, Task). It fetches nothing: an image is
 * named NAME-VERSION.bin, and the version is what the target has in the end.
 */
import type { Clock } from '@rackwright/platform';
import { answerUnder } from './denials.ts';
import {
  json,
  noContent,
  type RedfishAnswer,
  type RedfishJsonObject,
  refusal,
} from './messages.ts';
import type { RedfishFault, RedfishFirmware, RedfishHabits } from './options.ts';
import { collection, link, resource } from './shapes.ts';

const root = '/redfish/v1';
const updatePath = `${root}/UpdateService`;
export const simpleUpdatePath = `${updatePath}/Actions/UpdateService.SimpleUpdate`;
export const tasksPath = `${root}/TaskService/Tasks`;

interface Update {
  readonly component: string;
  readonly version: string;
  readonly startedMs: number;
}

export class Updates {
  readonly #clock: Clock;
  readonly #habits: RedfishHabits;
  readonly #versions: Map<string, string>;
  #update: Update | undefined;
  #orders = 0;
  /** Its tasks went with a restart. */
  #hasForgotten = false;

  constructor(clock: Clock, habits: RedfishHabits, firmware: readonly RedfishFirmware[]) {
    this.#clock = clock;
    this.#habits = habits;
    this.#versions = new Map(firmware.map(({ id, version }) => [id, version]));
  }

  orders(): number {
    return this.#orders;
  }

  firmware(fault: RedfishFault): RedfishFirmware[] {
    this.#settle(fault);
    return [...this.#versions].map(([id, version]) => ({ id, version }));
  }

  /** Whether it drops half-way now, and for how long it is away. */
  dropsNow(fault: RedfishFault): boolean {
    if (fault.kind !== 'updateRestarts' || this.#hasForgotten || this.#share() < 0.5) return false;
    this.#hasForgotten = true;
    return true;
  }

  order({ method, body }: { method: string; body: string }, fault: RedfishFault): RedfishAnswer {
    if (method !== 'POST')
      return refusal(405, 'OperationNotAllowed', 'an action is called by POST');
    this.#orders += 1;
    const requests = JSON.parse(body) as { ImageURI?: string; Targets?: readonly string[] };
    const version = /-([\w.]+)\.bin$/.exec(requests.ImageURI ?? '')?.[1];
    const component = requests.Targets?.[0]?.split('/').at(-1);
    if (version === undefined || component === undefined || !this.#versions.has(component)) {
      return refusal(400, 'ActionParameterValueFormatError', 'the image or its target is unknown');
    }
    this.#hasForgotten = false;
    this.#update = { component, version, startedMs: this.#clock.suspendAwareMs() };
    return answerUnder(fault, this.#answer(fault));
  }

  /** Undefined: there is no such resource. */
  at(path: string, fault: RedfishFault): RedfishJsonObject | undefined {
    const isTask = this.#update !== undefined && !this.#hasForgotten;
    if (path === tasksPath) return collection('Task', path, isTask ? [`${path}/1`] : []);
    if (path !== `${tasksPath}/1` || !isTask) return undefined;
    const isOthers = fault.kind === 'tasksReordered' && this.#share() >= 0.5;
    if (!isOthers) return this.#task(fault);
    return { ...this.#task(fault), StartTime: 'earlier', TaskState: 'Completed' };
  }

  #answer(fault: RedfishFault): RedfishAnswer {
    switch (this.#habits.updateAnswers) {
      case 'nothing':
        return noContent();
      case 'location':
        return json(202, {}, { location: `${tasksPath}/1` });
      case 'task':
        return json(202, this.#task(fault));
    }
  }

  /** What the update service offers. */
  static service(): RedfishJsonObject {
    return { Actions: { '#UpdateService.SimpleUpdate': { target: simpleUpdatePath } } };
  }

  #task(fault: RedfishFault): RedfishJsonObject {
    this.#settle(fault);
    const share = this.#share();
    const fails = fault.kind === 'updateFails' && share >= 0.5;
    const state = fails ? 'Exception' : share >= 1 ? 'Completed' : 'Running';
    return {
      ...resource('Task.v1_4_0.Task', `${tasksPath}/1`, '1', 'Update'),
      StartTime: new Date(this.#update?.startedMs ?? 0).toISOString(),
      TaskState: state,
      PercentComplete: Math.min(Math.floor(share * 100), 100),
      Messages: fails ? [{ Message: 'the image is damaged' }] : [],
      TaskMonitor: `${tasksPath}/1/Monitor`,
      Links: { OriginOfCondition: link(updatePath) },
    };
  }

  /** 1: over. */
  #share(): number {
    if (this.#update === undefined) return 0;
    const spentMs = this.#clock.suspendAwareMs() - this.#update.startedMs;
    return spentMs / this.#habits.updateMs;
  }

  #settle(fault: RedfishFault): void {
    const isWithout = fault.kind === 'updateLies' || fault.kind === 'updateFails';
    if (this.#update === undefined || isWithout || this.#share() < 1) return;
    this.#versions.set(this.#update.component, this.#update.version);
  }
}
