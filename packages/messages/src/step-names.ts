/**
 * Names of steps that more than one program knows. The program that orders a step and the one that
 * runs it must spell it alike, because an unknown name is refused only when the step starts.
 */

/** The agent fetches the image while the host still runs its old one. */
export const fetchImageStep = 'deploy.fetch_image';
/** The runner writes an image; never a step of a list that people write. */
export const writeImageStep = 'deploy.write_image';
/** The agent waits until the host has reported that it runs its image. */
export const awaitImageStep = 'deploy.await_image';

/** The runner erases the devices of the plan, or, the weaker level, their metadata only. */
export const eraseStep = 'deploy.erase_devices';
export const eraseMetadataStep = 'deploy.erase_devices_metadata';

/** Whether a step erases disks. */
export function isErasure(stepName: string): boolean {
  return stepName === eraseStep || stepName === eraseMetadataStep;
}

/** The runner loads the hardware heavily and compares the results. */
export const burnInCpuStep = 'burnin.cpu';
export const burnInMemoryStep = 'burnin.memory';
/** It writes over the disks of the plan: their content is lost. */
export const burnInDiskStep = 'burnin.disk';

/** It exchanges bytes with its agent. */
export const burnInNetworkStep = 'burnin.network';

const burnIns: ReadonlySet<string> = new Set([
  burnInCpuStep,
  burnInMemoryStep,
  burnInDiskStep,
  burnInNetworkStep,
]);

export function isBurnIn(stepName: string): boolean {
  return burnIns.has(stepName);
}

/** The prefix of the site's own programs in lists of steps; no other names have it. */
export const ownPrefix = 'own.';
/** The default priority of such a program. */
export const ownPriorityUsual = 100;

/** The runner reads the certified devices again, after a power cycle; it writes nothing. */
export const verifyErasedStep = 'deploy.verify_erased';

/** The runner's steps that steps of templates become. */
export const scriptStep = 'run.script';
export const commandStep = 'run.command';
export const fileStep = 'run.file';

const ofTemplates: ReadonlySet<string> = new Set([scriptStep, commandStep, fileStep]);

/** Whether a step of a template is one that the runner runs. */
export function isTemplateStepOfRunner(stepName: string): boolean {
  return ofTemplates.has(stepName);
}

/** The prefix of the runner's steps that only templates name, of those of later runners, too. */
const templatePrefix = 'run.';

/** Whether a step has nothing to run outside a template, as in a list of clean steps. */
export function isTemplateOnly(stepName: string): boolean {
  return stepName.startsWith(templatePrefix);
}

/** The control plane calls an outside address for a template. */
export const webhookStep = 'webhook';

/** The agent restarts the BMC, and waits until it answers again. */
export const resetBmcStep = 'management.reset_bmc';
/** The agent waits until settings of the firmware hold that a boot takes. */
export const checkSettingsStep = 'bios.check_settings';
/** The agent has the BMC update a component of its firmware. */
export const updateFirmwareStep = 'firmware.update';
/**
 * The agent has the BMC make the RAID volumes of a controller: the content of its disks is lost.
 */
export const applyVolumesStep = 'raid.apply';
