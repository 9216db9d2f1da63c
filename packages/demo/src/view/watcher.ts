/** Polls the control plane and shows the result. */
import type { Host } from '@rackwright/messages';
import type { Site } from '../site/site.ts';
import type { Picture } from './paint.ts';
import { hostProgress, rackProgress } from './progress.ts';
import type { DemoScreen } from './screen.ts';

const periodMs = 250;

export class Watcher {
  readonly #site: Site;
  readonly #screen: DemoScreen;
  readonly #startedAtMs: number;
  #timer: NodeJS.Timeout | undefined;
  #refreshing: Promise<void> | undefined;
  #hosts: readonly Host[] = [];
  #picture: Picture | undefined;
  footer = '';

  constructor(site: Site, screen: DemoScreen, startedAtMs: number) {
    this.#site = site;
    this.#screen = screen;
    this.#startedAtMs = startedAtMs;
  }

  /** The last known state. */
  get hosts(): readonly Host[] {
    return this.#hosts;
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#refreshing ??= this.#refresh().finally(() => {
        this.#refreshing = undefined;
      });
    }, periodMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#refreshing;
  }

  async #refresh(): Promise<void> {
    try {
      const [hosts, racks] = await Promise.all([this.#site.listHosts(), this.#site.listRacks()]);
      const order = this.#site.fleet.machines.map(({ name }) => name);
      const at = ({ name }: Host) => order.indexOf(name.replace('hosts/', ''));
      this.#hosts = hosts.toSorted((one, other) => at(one) - at(other));
      this.#picture = {
        hosts: this.#hosts.map(hostProgress),
        racks: racks.map(rackProgress),
        elapsedMs: 0,
        footer: '',
      };
    } catch {
      // The control plane is busy or gone: the last known state stays, its clock goes on.
    }
    if (this.#picture === undefined) return;
    const elapsedMs = Date.now() - this.#startedAtMs;
    this.#screen.show({ ...this.#picture, elapsedMs, footer: this.footer });
  }
}
