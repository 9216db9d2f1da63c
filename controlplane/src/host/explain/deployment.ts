/** Explains a deployment in progress: the agent's present work, or what it waits for. Pure. */
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  awaitImageStep,
  DeployProof,
  fetchImageStep,
  type Progress,
  type Run,
  type RunStep,
  type store,
  writeImageStep,
} from '@rackwright/messages';
import { switchedOnMs } from '../deployment/deployment.ts';
import { signsSeen } from '../deployment/not-proved.ts';
import { type ExplanationDraft, hostId } from './explanation-draft.ts';

/** For a step with progress, or one that waits for the host's own report; undefined for others. */
export function explainDeployment(
  record: store.HostRecord,
  run: Run,
  step: RunStep | undefined,
  progress: Progress | undefined,
): Partial<ExplanationDraft> | undefined {
  const { image, deploy } = record;
  const abort = `or end the run: rackwright host abort ${hostId(record)}`;
  switch (step?.name) {
    case fetchImageStep:
    case writeImageStep: {
      const verb = step.name === writeImageStep ? 'written' : 'fetched';
      const text = `${image} is being ${verb}`;
      const far = progress === undefined ? [] : [{ text: progressText(progress) }];
      return {
        causes: [{ text, since: step.startTime }, ...far],
        blocker: 'the image on its way',
        unblock: ['nothing: it goes on by itself', abort],
      };
    }
    case awaitImageStep: {
      if (deploy?.proof === DeployProof.POWER_ON) return undefined;
      const on = switchedOnMs(run);
      const since = on === undefined ? step.startTime : timestampFromMs(on);
      const text = `it was switched on to run ${image}, and has not phoned home yet`;
      return {
        causes: [{ text, since }, ...signsSeen(record.signs)],
        blocker: 'the proof that the host runs its image',
        unblock: [
          'nothing, as long as its first boot may take',
          `else look at the console of hosts/${hostId(record)}`,
          abort,
        ],
      };
    }
    default:
      return undefined;
  }
}

/** "62 %: fetches the image: 620 of 1000 MB" */
function progressText({ percent, text }: Progress): string {
  return `${percent} %: ${text}`;
}
