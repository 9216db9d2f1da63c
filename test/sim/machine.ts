/**
 * A simulated machine: power, firmware, disks, and what boots on it. Its firmware asks the
 * production boot decision of the rack's agents; its logs are what the judge reads.
 */

import { type BootGate, makeBootGate } from '@rackwright/agent';
import { asMac } from '@rackwright/dhcp';
import type { HostUid } from '@rackwright/messages';
import { type BmcSwitch, type BootFlags, SimBmc } from './bmc.ts';
import { type DiskImage, type DriveEvent, type DriveTraits, SimDrive } from './drives.ts';
import { type Manners, mannersOf } from './manners.ts';
import type { LiveAgent, PartView } from './part-view.ts';
import { netbootedImage } from './pools/netboot.ts';
import { phoneHome } from './pools/phone-home.ts';
import { behaviourOf } from './pools/registry.ts';
import { type Board, RunnerBox } from './runner-box.ts';
import type { WorkEvent } from './workflows/programs.ts';

/** A change of power, as the machine itself saw it. */
export interface PowerEvent {
  readonly atMs: number;
  readonly machine: string;
  readonly on: boolean;
  /** `system`: what runs there has stopped by itself, or something else switches it on. */
  readonly by: 'bmc' | 'person' | 'system';
  /** The BMC's address as it was when the command came. */
  readonly via: string;
  /** What ran before. */
  readonly ran: Booted['kind'];
}

/** What became of images on the machine's first disk, as the machine itself saw it. */
export interface ImageEvent {
  readonly atMs: number;
  readonly machine: string;
  /**
   * `begun`: a disk is being written; `written`: wholly; `fetched`: what runs without a disk.
   * `booted`, `proved`: that very image runs,
   * and has said so for the first time. `stopped`: one that had proved itself runs no more.
   * `opened`: a person has changed the disks.
   */
  readonly act: 'begun' | 'written' | 'fetched' | 'booted' | 'proved' | 'stopped' | 'opened';
  readonly digest: string;
  readonly deployment: string;
  readonly by: 'bmc' | 'person' | 'itself';
  /** Of what is `begun`: it comes over another image that is whole, and was not proved before. */
  readonly isRash?: boolean;
}

export type Booted =
  | { readonly kind: 'off' | 'firmware' | 'disk' | 'nothing' }
  | { readonly kind: 'runner'; readonly runner: RunnerBox };

/** The machine begins something that its disks do not see, or not alone. */
export interface StepEvent {
  readonly atMs: number;
  readonly machine: string;
  readonly step: string;
}

export interface MachineLogs {
  readonly steps: StepEvent[];
  readonly power: PowerEvent[];
  readonly drives: DriveEvent[];
  /** What steps of templates do, calls of webhooks among it. */
  readonly work: WorkEvent[];
  readonly images: ImageEvent[];
}

/** From the last look at the power to a soft off, where the BMC is slow. */
const askRaceMs = 30_000;
const comesBackAfterMs = 1_500;
/** How often a machine calls that is not heard. */
const phoneHomeTries = 20;

/** Boot flags of IPMI 2.0 §28.13: bit 7 says valid; the selector of the disk. */
const flagValid = 0x80;
const deviceDisk = 0x08;

export class SimMachine implements BmcSwitch {
  readonly name: string;
  readonly guid: readonly number[];
  readonly serial: string;
  /** That of the interface that its host is known by. */
  mac: string;
  /** Those of all its interfaces. */
  macs: readonly string[];
  /** That of the interface that it boots from now. */
  bootMac: string;
  board: Board;
  /** What it says in band of where its BMC is; empty: nothing. */
  toldBmcAddress = '';
  readonly bmc: SimBmc;
  drives: SimDrive[] = [];
  bootFlags: BootFlags = [0, 0];
  booted: Booted = { kind: 'off' };
  /** A person, or work of a lost stretch, has changed its disks: no inventory can show it yet. */
  unseen = false;
  /** A runner has looked at the disks since. */
  listed = true;
  /** Also what a runner saw of them may be forgotten, with the store. */
  changed = false;
  /** Its network card has firmware to be flashed. */
  flashable = false;
  readonly manners: Manners;
  /** When it was asked to stop, simulated time. */
  readonly asks: number[] = [];
  /** Whether our runner has come up since it was switched on last. */
  ranRunner = false;
  readonly #view: PartView;
  readonly #logs: MachineLogs;
  #offAtMs = Number.NEGATIVE_INFINITY;
  #power = 0;
  #boots = 0;
  /** The image that it got over the network last. */
  netbooted: DiskImage | undefined;
  /** The image that runs and has proved itself. */
  #serving: DiskImage | undefined;
  /** Deployments that run here, or did, and those of which the agent has heard it. */
  readonly #proved = new Set<string>();
  readonly #heard = new Set<string>();
  #on = false;

  constructor(view: PartView, logs: MachineLogs, index: number, wallStartMs: number) {
    this.#view = view;
    this.#logs = logs;
    this.name = `m${index}`;
    this.manners = mannersOf(view.seed, index);
    this.guid = Array.from({ length: 16 }, (_, at) => (index * 31 + at) & 0xff);
    this.serial = `S${index}`;
    this.mac = `52:54:00:00:00:${index.toString(16).padStart(2, '0')}`;
    this.macs = [this.mac];
    this.bootMac = this.mac;
    this.board = { uuid: Uint8Array.from(this.guid), serial: this.serial, product: '' };
    this.bmc = new SimBmc(view.heap, wallStartMs, this);
  }

  isOn(): boolean {
    return this.#on;
  }

  /** Old data is on one of its disks. */
  get hasData(): boolean {
    return this.drives.some((drive) => drive.hasData);
  }

  addDrive(traits: DriveTraits, hasData: boolean): void {
    this.drives = [...this.drives, new SimDrive(traits, hasData)];
  }

  /** A person takes a disk out and puts another one in. */
  replaceDrive(at: number, traits: DriveTraits, hasData: boolean): void {
    this.unseen = true;
    this.listed = false;
    this.changed = true;
    if (at === 0) this.#noteImage('opened', this.drives[0]?.image, 'person');
    this.drives = this.drives.map((drive, index) =>
      index === at ? new SimDrive(traits, hasData) : drive,
    );
  }

  switchPower(on: boolean): void {
    this.#switch(on, 'bmc');
  }

  /** A person presses the button. */
  pressButton(): void {
    this.#switch(!this.#on, 'person');
  }

  /** The kernel panics, or somebody reboots it, and the machine starts anew by itself. */
  panic(): void {
    if (!this.#on) return;
    this.#stop('itself');
    this.#start();
  }

  /** As its manners are; only what runs from its disk listens. */
  askToStop(): void {
    const { nowMs } = this.#view.heap;
    this.#view.trace(`${this.name} is asked to stop`);
    if (!this.#on) {
      // A machine that stops between the last look and the order is nobody's mistake.
      const offForMs = nowMs - this.#offAtMs;
      if (offForMs > askRaceMs) this.#view.found('G2', `${this.name} is off, and a soft off came`);
      this.#switch(true, 'system');
      return;
    }
    this.asks.push(nowMs);
    const { stopsAfterMs, comesBack } = this.manners;
    if (this.booted.kind !== 'disk' || stopsAfterMs === undefined) return;
    this.#later(stopsAfterMs, () => {
      this.#switch(false, 'system');
      this.#view.count('stopped when asked');
      if (comesBack) this.#later(comesBackAfterMs, () => this.#switch(true, 'system'));
    });
  }

  #switch(on: boolean, by: PowerEvent['by']): void {
    const { nowMs: atMs } = this.#view.heap;
    this.#view.trace(`${this.name} power ${on ? 'on' : 'off'} by ${by}`);
    const { kind: ran } = this.booted;
    this.#logs.power.push({ atMs, machine: this.name, on, by, via: this.bmc.switchedVia, ran });
    if (on === this.#on) return;
    this.#on = on;
    this.ranRunner = false;
    if (!on) this.#offAtMs = atMs;
    if (on) this.#start();
    // A system stops by itself only when its BMC has asked it.
    else this.#stop(by === 'system' ? 'bmc' : by);
  }

  #stop(by: ImageEvent['by']): void {
    this.#power += 1;
    if (this.#serving !== undefined) this.#noteImage('stopped', this.#serving, by);
    this.#serving = undefined;
    if (this.booted.kind === 'runner') this.booted.runner.powerLost();
    this.booted = { kind: 'off' };
    const { nowMs } = this.#view.heap;
    for (const drive of this.drives) {
      this.#noteDrive(drive, by === 'itself' ? 'restarted' : 'powerLost');
      if (by === 'itself') drive.restarted(nowMs);
      else if (drive.powerLost(nowMs)) this.#noteDrive(drive, 'returned');
    }
  }

  #start(): void {
    this.#power += 1;
    this.booted = { kind: 'firmware' };
    this.#later(12_000, () => {
      const [flags, device] = this.bootFlags;
      this.bootFlags = [0, 0];
      if ((flags & flagValid) !== 0 && device === deviceDisk) this.#bootDisk();
      else this.#netboot();
    });
  }

  /** Unless the power changes before. */
  #later(typicalMs: number, work: () => void): void {
    const power = this.#power;
    this.#view.heap.after(this.#view.chance.around(typicalMs), () => {
      if (power === this.#power) work();
    });
  }

  #netboot(): void {
    for (const agent of this.#view.agents()) {
      const decision = askBootGate(this.#view, agent, this.bootMac);
      if (decision.kind === 'image') return this.#fetchImage(agent, decision.hostUid);
      if (decision.kind !== 'runner' && decision.kind !== 'discovery') continue;
      const token = decision.bootToken;
      this.#view.trace(`${this.name} boots the runner from ${agent.box}`);
      this.#later(6_000, () => this.#startRunner(agent.box, token));
      return;
    }
    this.#later(10_000, () => this.#bootDisk());
  }

  /** As its script says: what is not here yet is asked for again. */
  #fetchImage(agent: LiveAgent, hostUid: HostUid): void {
    const image = netbootedImage(agent, hostUid);
    if (image === undefined) {
      this.#later(15_000, () => this.#netboot());
      return;
    }
    this.#later(6_000, () => {
      this.booted = { kind: 'disk' };
      this.netbooted = image;
      this.#noteImage('fetched', image, 'itself');
      this.#runImage(image);
    });
  }

  #bootDisk(): void {
    const [first] = this.drives;
    if (first?.hasData !== true) {
      this.booted = { kind: 'nothing' };
      return;
    }
    const { image } = first;
    if (image?.whole === false) {
      this.booted = { kind: 'nothing' };
      return;
    }
    this.booted = { kind: 'disk' };
    first.bootSystem();
    this.#noteDrive(first, 'osWrote');
    if (image !== undefined) this.#runImage(image);
  }

  scribble(): void {
    const [first] = this.drives;
    if (first === undefined) return;
    first.fill();
    this.#noteDrive(first, 'osWrote');
    this.#view.count('program of a clean writes to a disk');
  }

  /** An image comes onto the first disk: a part of it, or all. */
  writeImage(image: DiskImage): void {
    const [first] = this.drives;
    const { imageProofs } = this.#view;
    const { deployment, digest } = image;
    const before = first?.image;
    const isOver = before?.whole === true && before.deployment !== deployment;
    const isRash = !image.whole && isOver && !imageProofs.isProved(deployment, digest);
    if (!image.whole && isOver) this.#view.count('image begun over another');
    if (!image.whole && !imageProofs.isReadable(deployment, digest)) {
      this.#view.count('image written as it came');
    }
    if (image.whole) imageProofs.written(deployment, digest);
    // Who lies has been written to, as far as anybody can tell.
    if (first?.traits.lies === false) first.takeImage(image);
    this.#noteImage(image.whole ? 'written' : 'begun', image, 'itself', isRash);
  }

  /** The image is up; one that starts for the first time says so when it is through with that. */
  #runImage(image: DiskImage): void {
    this.#noteImage('booted', image, 'itself');
    if (this.#proved.has(image.deployment)) this.#serving = image;
    if (this.#heard.has(image.deployment)) return;
    const { firstBootMs } = behaviourOf(image.digest);
    if (firstBootMs === undefined) return;
    this.#later(firstBootMs, () => void this.#phoneHome(image, phoneHomeTries));
  }

  /** As cloud-init does it: some tries, and none any more once it was heard. */
  async #phoneHome(image: DiskImage, triesLeft: number): Promise<void> {
    if (!this.#proved.has(image.deployment)) {
      this.#proved.add(image.deployment);
      this.#serving = image;
      this.#noteImage('proved', image, 'itself');
    }
    const power = this.#power;
    const answer = await phoneHome(this.#view, this.name, image);
    if (answer === 'proved' || answer === 'outdated') this.#heard.add(image.deployment);
    if (power !== this.#power || this.#heard.has(image.deployment)) return;
    if (triesLeft > 0) this.#later(15_000, () => void this.#phoneHome(image, triesLeft - 1));
  }

  #noteDrive({ serial }: SimDrive, act: DriveEvent['act']): void {
    const { nowMs: atMs } = this.#view.heap;
    this.#logs.drives.push({ atMs, machine: this.name, serial, act });
  }

  #noteImage(
    act: ImageEvent['act'],
    image: DiskImage | undefined,
    by: ImageEvent['by'],
    isRash = false,
  ): void {
    const { digest = '', deployment = '' } = image ?? {};
    const { nowMs: atMs } = this.#view.heap;
    this.#view.trace(`${this.name} image ${act} ${digest.slice(0, 12)} ${deployment}`);
    this.#logs.images.push({ atMs, machine: this.name, act, digest, deployment, by, isRash });
  }

  #startRunner(box: string, bootToken: string): void {
    this.#boots += 1;
    const bootId = `${this.name}-boot${this.#boots}`;
    const log = (event: DriveEvent) => void this.#logs.drives.push(event);
    const begins = (step: string) =>
      void this.#logs.steps.push({ atMs: this.#view.heap.nowMs, machine: this.name, step });
    const works = (event: WorkEvent) => void this.#logs.work.push(event);
    const boot = { machine: this, box, bootToken, bootId, log, begins, works };
    const runner = new RunnerBox(this.#view, boot);
    this.booted = { kind: 'runner', runner };
    this.ranRunner = true;
    runner.start();
  }
}

const bootGates = new WeakMap<LiveAgent, BootGate>();

/** Asks the production boot decision of an agent for the script of this MAC. */
export function askBootGate(view: PartView, agent: LiveAgent, mac: string): ReturnType<BootGate> {
  const { core, process, box } = agent;
  const bootGate =
    bootGates.get(agent) ??
    makeBootGate({
      clock: process.clock,
      log: view.log(box),
      memory: () => core.bootMemory(),
      onNetboot: (netboot) => process.enter(() => core.onNetboot(netboot)),
      openDiscovery: (unknown) => core.openDiscovery(unknown),
    });
  bootGates.set(agent, bootGate);
  const decision = bootGate(asMac(mac), 'script');
  if (decision.kind === 'discovery') view.discoveryBoot(agent, mac, decision.operationId);
  return decision;
}
