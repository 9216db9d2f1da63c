/**
 * U-Boot's form of the boot scripts: the same rules as iPXE's, in the configuration language of
 * `pxe get` and `pxe boot`, which is that of extlinux.
 *
 * U-Boot finds its first script under a name that is the same for every host. That one fetches the
 * host's own configuration, by the MAC that U-Boot has booted with, and boots what it names. It
 * does so again and again until it gets no configuration: a runner's ends with its grant. A host
 * that waits for its image goes on to its disk when the agent does not answer.
 *
 * U1 A value of the configuration reaches to the end of its line, and nothing can be quoted. A word
 *    with a control character is refused.
 * U2 U-Boot expands variables in the kernel's command line. A word with a character that means
 *    something there is refused.
 * U3 The ramdisk stands before the command line, because U-Boot looks for one in the command line
 *    otherwise. Without a ramdisk such words are refused.
 * U4 A host without a boot has no configuration, so that U-Boot goes on to its disk.
 */
import { uBootScriptName } from '@rackwright/dhcp';
import type { HostName } from '@rackwright/messages';
import { type ImageScript, imageArgs, retrySeconds, waitingText } from './image-script.ts';
import { kernelArgs, lines, plain, type RunnerScript, whoStarts } from './script.ts';

/** The first script, of all hosts. */
export function uBootStartScript(): string {
  return lines([
    'echo Rackwright: asks what this machine boots',
    // U-Boot puts the folder of this name before the names of all files that it asks for.
    `setenv bootfile ${uBootScriptName}`,
    'while pxe get; do',
    '  pxe boot',
    `  sleep ${retrySeconds}`,
    'done',
  ]);
}

/** Loads kernel and ramdisk and starts them. Throws as the iPXE script does. */
export function uBootRunnerScript(script: RunnerScript): string {
  const { decision, runner, fileUrl } = script;
  return label(`${whoStarts(decision)} starts the runner`, [
    `kernel ${file(fileUrl(runner.kernel))}`,
    `initrd ${file(fileUrl(runner.initrd))}`,
    `append ${kernelArgs(script).map(uBootWord).join(' ')}`,
  ]);
}

/** Loads the image's kernel and ramdisk and starts them. Throws when U-Boot cannot. */
export function uBootImageScript(script: ImageScript): string {
  const { hostName, urls, boot } = script;
  const [initrd, ...more] = boot.initrds;
  if (more.length > 0) {
    throw new Error(`U-Boot loads one ramdisk, and the image has ${boot.initrds.length}`);
  }
  const args = imageArgs(script).map(uBootWord);
  if (initrd === undefined && args.some((word) => word.includes('initrd='))) {
    throw new Error('U-Boot takes a word with "initrd=" for a file to load');
  }
  return label(`${plain(hostName)} boots its image over the network`, [
    `kernel ${file(urls.blob(boot.kernel))}`,
    ...(initrd === undefined ? [] : [`initrd ${file(urls.blob(initrd))}`]),
    `append ${args.join(' ')}`,
  ]);
}

/** Its kernel is not here yet: without a kernel U-Boot boots nothing, and asks again. */
export function uBootWaitingScript(hostName: HostName, text: string): string {
  return label(`${plain(hostName)} waits for its image: ${waitingText(text)}`, []);
}

/** A label of its own that is the default; the text is for a person at the console. */
function label(says: string, values: readonly string[]): string {
  const inside = [`menu label Rackwright: ${says}`, ...values].map((line) => `  ${line}`);
  return lines(['default rackwright', 'label rackwright', ...inside]);
}

/** Absolute: it comes from the server that the configuration came from. */
function file(url: string): string {
  return new URL(url).pathname;
}

/** A word that U-Boot hands to the kernel as it is. Throws on one that it would change (U1, U2). */
export function uBootWord(text: string): string {
  if (/\p{Cc}/u.test(text)) {
    throw new Error('a word for U-Boot holds a control character');
  }
  // A command line that begins with "#" is a comment.
  if (/[$\\']|^#/.test(text)) {
    throw new Error("a word for U-Boot holds one of $ \\ ' or begins with #");
  }
  return text;
}
