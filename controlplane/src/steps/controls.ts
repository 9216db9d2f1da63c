/**
 * Control steps: what people may write between the steps of a list. They are the engine's own, so
 * no agent and no runner describes them.
 */
import { create } from '@bufbuild/protobuf';
import { ArgumentType, agent, RerunClass, StepArgumentSchema } from '@rackwright/messages';

/** Longest pause that a list may ask for: one day. */
const waitSecondsMax = 86_400n;

const control = (name: string, description: string) =>
  create(agent.StepDescriptionSchema, {
    name,
    description,
    rerunClass: RerunClass.SAFE,
    destructive: false,
    abortable: true,
  });

const wait = control('wait', 'Go on after so many seconds; a person may end the pause earlier.');
wait.typedArguments.push(
  create(StepArgumentSchema, {
    name: 'seconds',
    type: ArgumentType.INTEGER,
    required: true,
    description: 'how long, in seconds',
    minimum: 1n,
    maximum: waitSecondsMax,
  }),
);

/** The steps that a list may have in addition to those of agent and runner. */
export const controlSteps: readonly agent.StepDescription[] = [
  control('hold', 'Wait until a person resumes or skips.'),
  wait,
  control('powerOn', 'Boot the runner again, after powerOff.'),
  control('powerOff', 'End the runner and switch the host off.'),
  control('reboot', 'Switch off and boot the runner again.'),
];
