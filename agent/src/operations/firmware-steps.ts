/**
 * Steps on a machine's firmware and its settings, by its BMC. A setting waits for the next boot,
 * which the list of the run orders: no step here switches a machine.
 */
import { create } from '@bufbuild/protobuf';
import { type BiosSettings, failed, isPlainUrl } from '@rackwright/bmc';
import {
  ArgumentType,
  agent,
  checkSettingsStep,
  RerunClass,
  updateFirmwareStep,
} from '@rackwright/messages';
import { invalid, problemIn, type Read, valid } from '@rackwright/platform';
import type { OutOfBandStep } from './out-of-band-step.ts';

const settingsMax = 64;
const optionsMax = 32;

const asserts = {
  priority: 0,
  rerunClass: RerunClass.SAFE,
  destructive: false,
  abortable: true,
};

const form = 'NAME=VALUE, more of them behind ";"';
const settingsArgument = {
  name: 'settings',
  type: ArgumentType.STRING,
  required: true,
  description: `Settings of the firmware as its BMC calls them: ${form}.`,
};

const noSettings = failed('unsupported', 'the protocol of this BMC has no settings of firmware');
const noUpdates = failed('unsupported', 'the protocol of this BMC has no updates of firmware');
const noOrder = failed('unsupported', 'the protocol of this BMC has no persistent boot order');

const applySettings: OutOfBandStep = {
  description: create(agent.StepDescriptionSchema, {
    name: 'bios.apply_settings',
    ...asserts,
    description:
      'Has the firmware take these settings at its next boot, and reads back that they wait. ' +
      'Put a reboot and bios.check_settings behind it.',
    typedArguments: [settingsArgument],
  }),
  problem: ({ settings = '' }) => problemIn(parseSettings(settings)),
  run: async (driver, { settings = '' }, signal) =>
    (await driver.stageBios?.(settingsIn(settings), signal)) ?? noSettings,
};

const checkSettings: OutOfBandStep = {
  description: create(agent.StepDescriptionSchema, {
    name: checkSettingsStep,
    ...asserts,
    description: 'Waits until these settings of the firmware hold, after a boot.',
    typedArguments: [settingsArgument],
  }),
  problem: ({ settings = '' }) => problemIn(parseSettings(settings)),
  run: async (driver, { settings = '' }, signal) =>
    (await driver.checkBios?.(settingsIn(settings), signal)) ?? noSettings,
};

const setBootOrder: OutOfBandStep = {
  description: create(agent.StepDescriptionSchema, {
    name: 'bios.set_boot_order',
    ...asserts,
    description: 'Puts boot options first in the persistent boot order, and reads it back.',
    typedArguments: [
      {
        name: 'first',
        type: ArgumentType.STRING,
        required: true,
        description: 'Boot options as the BMC calls them, the first one first, ";" between them.',
      },
    ],
  }),
  problem: ({ first = '' }) => {
    const ids = first.split(';');
    const isRight = ids.every((id) => /^[!-:<-~]{1,64}$/.test(id));
    const isBounded = ids.length <= optionsMax && new Set(ids).size === ids.length;
    if (isRight && isBounded) return undefined;
    return `first must be 1 to ${optionsMax} different boot options, ";" between them`;
  },
  run: async (driver, { first = '' }, signal) =>
    (await driver.setBootOrder?.(first.split(';'), signal)) ?? noOrder,
};

const text = (name: string, description: string) => ({
  ...{ name, description, required: true, type: ArgumentType.STRING },
});

const updateFirmware: OutOfBandStep = {
  description: create(agent.StepDescriptionSchema, {
    name: updateFirmwareStep,
    ...asserts,
    // A change that was ordered is never ordered again automatically.
    rerunClass: RerunClass.CHECK_FIRST,
    abortable: false,
    description:
      'Has the BMC update a component of its firmware, and reads back the version. It does ' +
      'nothing where the component has that version.',
    typedArguments: [
      text('component', 'The component, as the list of firmware calls it.'),
      text('version', 'The version that it reads afterwards.'),
      text('uri', 'Where the BMC fetches the image: below a URL that the agent allows.'),
    ],
  }),
  problem: ({ component = '', version = '', uri = '' }) => {
    const isName = (one: string): boolean => /^[!-~][ -~]{0,127}$/.test(one);
    if (!isName(component)) return 'component must be 1 to 128 printable characters';
    if (!isName(version)) return 'version must be 1 to 128 printable characters';
    if (isPlainUrl(uri)) return undefined;
    return 'uri must be a plain http:// or https:// URL, without user, query, "%" and ".."';
  },
  run: async (driver, values, signal, { isCheck, onProgress }) => {
    const { component = '', version = '', uri = '' } = values;
    const order = { component, version, uri, checkOnly: isCheck };
    return (await driver.updateFirmware?.(order, onProgress, signal)) ?? noUpdates;
  },
  canCheck: true,
};

export const firmwareSteps: readonly OutOfBandStep[] = [
  applySettings,
  checkSettings,
  setBootOrder,
  updateFirmware,
];

/** The settings of "A=B;C=D", or what is wrong with the text. */
export function parseSettings(text: string): Read<BiosSettings> {
  const settings = new Map<string, string>();
  for (const pair of text.split(';')) {
    const [, name, content] = /^([A-Za-z][\w.:-]{0,127})=([^\p{Cc}]{0,255})$/u.exec(pair) ?? [];
    if (name === undefined || content === undefined) {
      return invalid(`settings must be ${form}; ${JSON.stringify(pair.slice(0, 40))} is not`);
    }
    if (settings.has(name)) return invalid(`settings names ${name} twice`);
    settings.set(name, content);
  }
  if (settings.size <= settingsMax) return valid(settings);
  return invalid(`settings has ${settings.size} settings; at most ${settingsMax} are taken`);
}

/** The settings of a text that was checked. */
function settingsIn(text: string): BiosSettings {
  const parsed = parseSettings(text);
  return parsed.kind === 'bad' ? new Map() : parsed.value;
}
