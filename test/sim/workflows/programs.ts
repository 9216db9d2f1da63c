/**
 * What steps of templates do on a simulated machine: programs that take time and end by chance,
 * files, and the machine's own log of all that. The steps themselves are the production ones.
 */
import type { OperationId } from '@rackwright/messages';
import { type Disk, valid } from '@rackwright/platform';
import {
  type MachineFiles,
  type Programs,
  runCommand,
  runFile,
  runScript,
  type Step,
} from '@rackwright/runner';
import type { SimPlatters, SimProcess } from '@rackwright/sim';
import type { PartView } from '../part-view.ts';
import { commandParts } from './images.ts';
import { ownTemplate } from './own-steps.ts';
import { type Mark, probeFailure, probeTitle, readMark } from './recipes.ts';

/** Something that a step of a template does, as the device saw it. */
export interface WorkEvent extends Mark {
  readonly atMs: number;
  /** Where it is done; empty: by a call from the control plane. */
  readonly machine: string;
  /** The boot that it is done in. */
  readonly boot: string;
  /** "<host uid>/<run>/<step>/<attempt>" */
  readonly operationId: OperationId;
  /** begun and ended go together, unless it was cut; `left`: the machine leaves the runner. */
  readonly act: 'begun' | 'ended' | 'cut' | 'left' | 'wrote' | 'called';
  /** How it ended; undefined: nobody can say, or it did not end. */
  readonly code: number | undefined;
}

/** The machine that programs run on. */
export interface WorkPlace {
  readonly view: PartView;
  readonly process: SimProcess;
  readonly machine: string;
  readonly boot: string;
  readonly platters: SimPlatters;
  readonly disk: Disk;
  readonly log: (event: WorkEvent) => void;
  /** A program writes to a disk of the machine. */
  readonly scribble: () => void;
  /** The machine starts anew. */
  readonly reboot: () => void;
}

const folder = '/run/step';
/** Of a program that is asked to stop. */
const stopMs = 300;
/** From the beginning of a reboot until nothing runs any more. */
const rebootMs = 1_500;

/** The production steps that templates use. */
export function templateSteps(place: WorkPlace): Step[] {
  const shared = { disk: place.disk, privateFolder: folder, workingFolder: '/', path: '/bin' };
  const interpreters = new Map([['/bin/sh', '/bin/sh']]);
  const programs = programsOf(place);
  const ofScripts = runScript({ ...shared, interpreters, programs });
  const ofCommands = runCommand(valid(commandParts(place.view, place.process, programs)));
  const { description } = runFile(filesOf(place, ''));
  const ofFiles: Step = {
    description,
    run: (context) => runFile(filesOf(place, context.operationId)).run(context),
  };
  return [ofScripts, ofCommands, ofFiles];
}

function filesOf(place: WorkPlace, operationId: OperationId): MachineFiles {
  return {
    writeHere: async (_path, file) => {
      const mark = readMark(new TextDecoder().decode(file.content));
      if (mark !== undefined) note(place, mark, operationId, 'wrote');
      return file;
    },
  };
}

function note(
  { view, machine, boot, log }: WorkPlace,
  mark: Mark,
  operationId: OperationId,
  act: WorkEvent['act'],
  code?: number,
): void {
  view.count(`template step ${act}`);
  log({ ...mark, atMs: view.heap.nowMs, machine, boot, operationId, act, code });
  view.trace(`${machine} ${act} ${mark.title} of version ${mark.version}: ${operationId}`);
}

function programsOf(place: WorkPlace): Programs {
  const { view, process, platters } = place;
  return {
    start: async ({ operationId, args }, onOutput) => {
      const [given = ''] = args;
      const bytes = platters.files.get(given);
      const mark = readMark(bytes === undefined ? given : new TextDecoder().decode(bytes));
      if (mark === undefined) {
        const message = 'there is no such script';
        return { end: Promise.resolve({ kind: 'notStarted', message }), stop: () => undefined };
      }
      note(place, mark, operationId, 'begun');
      if (mark.templateId === ownTemplate) place.scribble();
      let over = false;
      process.whenKilled(() => {
        if (!over) note(place, mark, operationId, 'cut');
        over = true;
      });
      if (mark.title === 'leave') {
        process.clock.after(rebootMs, () => {
          note(place, mark, operationId, 'left');
          place.reboot();
        });
        return { end: new Promise(() => undefined), stop: () => undefined };
      }
      const program = Promise.withResolvers<{ kind: 'exited'; code: number } | Stopped>();
      const finish = (code: number | undefined) => {
        if (over) return;
        over = true;
        note(place, mark, operationId, 'ended', code);
        onOutput(new TextEncoder().encode(`${mark.title} ends with ${code}\n`));
        if (code === undefined) program.resolve({ kind: 'signalled', signal: 'SIGTERM' });
        else program.resolve({ kind: 'exited', code });
      };
      onOutput(new TextEncoder().encode(`${mark.title} begins\n`));
      process.clock.after(view.chance.around(6_000), () => finish(codeOf(view, mark)));
      const stop = () => void process.clock.after(stopMs, () => finish(undefined));
      return { end: program.promise, stop };
    },
  };
}

type Stopped = { kind: 'signalled'; signal: string };

function codeOf({ chance, random }: PartView, { title }: Mark): number {
  if (title === probeTitle) return random.fraction() < 0.5 ? 0 : probeFailure;
  return chance.happens(0.2) ? chance.pick([1, 3, probeFailure]) : 0;
}
