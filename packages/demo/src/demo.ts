/**
 * The demo from its first line to its last: builds the machine room, shows it, plays the story or
 * runs a script, stays up when wanted, and removes everything again.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { counted } from '@rackwright/messages';
import { errorText } from '@rackwright/platform';
import { type Fleet, planFleet } from './fleet.ts';
import type { DemoOptions } from './options.ts';
import { makeFolder, removeStaleFolders } from './site/folder.ts';
import { Site } from './site/site.ts';
import { parseGuide } from './story/guide.ts';
import { parseScript, runScript, type ScriptCommand } from './story/script.ts';
import { announce, type Stage, StoryFailure } from './story/stage.ts';
import { tellStory } from './story/story.ts';
import { seconds } from './view/paint.ts';
import { DemoScreen, type Terminal } from './view/screen.ts';
import { Watcher } from './view/watcher.ts';
import { timed } from './view/wrap.ts';

const footerUp = 'Ctrl-C ends the demo and removes everything of it.';

export class Demo {
  readonly #options: DemoOptions;
  readonly #terminal: Terminal;
  readonly #screen: DemoScreen;
  readonly #startedAtMs: number;
  readonly #interrupted = Promise.withResolvers<void>();
  #site: Site | undefined;
  #watcher: Watcher | undefined;

  constructor(options: DemoOptions, terminal: Terminal, startedAtMs: number) {
    this.#options = options;
    this.#terminal = terminal;
    this.#screen = new DemoScreen(terminal, options.verbose);
    this.#startedAtMs = startedAtMs;
  }

  /** Ends it early; `run` then takes everything down. */
  interrupt(): void {
    this.#interrupted.resolve();
  }

  /** Resolves with the exit code when nothing is left. */
  async run(): Promise<number> {
    try {
      return await Promise.race([this.#play(), this.#interrupted.promise.then(() => 130)]);
    } catch (error) {
      const problem = error instanceof StoryFailure ? 'This did not hold' : 'The demo cannot go on';
      this.#screen.say(`\n${problem}: ${errorText(error)}`);
      const last = this.#site?.lastLines();
      if (last !== undefined && last !== '') this.#screen.say(`The ends of the logs:\n${last}`);
      return 1;
    } finally {
      await this.#takeDown();
    }
  }

  async #play(): Promise<number> {
    const { check, scripts, racks } = this.#options;
    const commands = scripts.length === 0 ? undefined : scripts.flatMap(readScript);
    const fleet = planFleet(this.#options);
    this.#say(`Rackwright: ${counted(racks, 'rack')}, ${machinesOf(fleet)}, on loopback`);
    const stage = await this.#build(fleet);
    await this.#perform(stage, commands);
    announce(stage, `All of it held, after ${seconds(stage.elapsedMs()).trim()}.`);
    if (check || commands !== undefined) return 0;
    this.#invite(stage.site);
    return await new Promise<never>(() => {});
  }

  async #build(fleet: Fleet): Promise<Stage> {
    const removed = await removeStaleFolders();
    if (removed > 0) this.#say(`Removed what ${counted(removed, 'killed demo')} had left behind`);
    const site = new Site(makeFolder(), fleet, this.#options.programs);
    this.#site = site;
    this.#say('Bundling control plane, console, agent, runner and command');
    await site.bundle();
    if (this.#options.nats) {
      this.#say('Starting three NATS servers');
      await site.startNats();
    }
    const store = this.#options.nats ? 'NATS' : 'its embedded store';
    this.#say(`Starting the control plane on ${store}`);
    await site.startControlPlane();
    this.#say('Starting a registry of images');
    await site.startRegistry();
    this.#say(`Agents join ${fleet.racks.join(', ')} by their tokens`);
    await site.startRacks();
    await site.enrolHosts();
    this.#say(`${machinesOf(fleet)} enrolled: each is verified, inspected, cleaned`);
    this.#watcher = new Watcher(site, this.#screen, this.#startedAtMs);
    this.#watcher.start();
    return {
      site,
      fleet,
      columns: () => Math.min(this.#terminal.size().columns, 100),
      elapsedMs: () => Date.now() - this.#startedAtMs,
      print: (text) => this.#screen.say(text),
    };
  }

  async #perform(stage: Stage, commands: readonly ScriptCommand[] | undefined): Promise<void> {
    if (commands === undefined) await tellStory(stage);
    else await runScript(stage, commands);
  }

  #invite({ fleet, folder, registry, operatorsAddress }: Site): void {
    // A host that is no pool's: a clean of the others is refused.
    const free = fleet.machines.find(({ takesImages }) => !takesImages)?.name ?? '';
    this.#screen.say(
      [
        '',
        'It stays up. In a browser, which will not know its certificate:',
        '',
        `  https://${operatorsAddress}`,
        `  token: ${join(folder, 'controlplane/identity/admin.token')}`,
        '',
        'In another terminal, in this folder:',
        '',
        `  export RACKWRIGHT_CONFIG=${folder}/rackwright.json`,
        '  npx rackwright host list',
        `  npx rackwright host clean ${free}`,
        `  npx rackwright host watch ${free}`,
        `  npx rackwright pool update web --image ${registry.name}/web:1.0`,
        '  npx rackwright pool watch web --until current',
        '',
        `Images to push: ${folder}/images`,
        `Logs of all programs and screens of all machines: ${folder}`,
      ].join('\n'),
    );
    if (this.#watcher !== undefined) this.#watcher.footer = footerUp;
  }

  #say(text: string): void {
    const time = seconds(Date.now() - this.#startedAtMs);
    this.#screen.say(timed(time, text, this.#terminal.size().columns - 1));
  }

  async #takeDown(): Promise<void> {
    await this.#watcher?.stop();
    this.#screen.close();
    if (this.#site === undefined) return;
    await this.#site.stop();
    this.#screen.say('The demo has ended; nothing of it is left.');
  }
}

const guidesFolder = join(import.meta.dirname, '../../../controlplane/guides');

/** A script, a guide, or the name of a guide that stands among the guides. */
function readScript(named: string): ScriptCommand[] {
  const path = /^[a-z-]+$/.test(named) ? join(guidesFolder, `${named}.md`) : named;
  try {
    const text = readFileSync(path, 'utf8');
    return path.endsWith('.md') ? parseGuide(text) : parseScript(text);
  } catch (error) {
    throw new Error(`the script ${path} cannot be used`, { cause: error });
  }
}

/** "8 machines and 4 with broken BMCs" */
function machinesOf({ machines }: Fleet): string {
  const broken = machines.filter(({ isExample }) => isExample).length;
  const rest = counted(machines.length - broken, 'machine');
  return broken === 0 ? rest : `${rest} and ${broken} with broken BMCs`;
}
