/**
 * GRUB's form of the boot scripts: the same rules as iPXE's, in the language of GRUB's shell.
 *
 * GRUB finds its first script under a name that is the same for every host. That one fetches the
 * host's own, by the MAC that GRUB has booted with. The host's script starts a kernel or a disk, or
 * it ends, and then it is fetched anew.
 *
 * G1 Every word that is not ours stands in single quotes, between which GRUB's shell expands
 *    nothing (GRUB manual, "Quoting").
 * G2 All files come by TFTP: the GRUB that Debian signs has nothing else, and under Secure Boot it
 *    loads no module.
 */
import type { HostName } from '@rackwright/messages';
import { type ImageScript, imageArgs, retrySeconds, waitingText } from './image-script.ts';
import { attemptsMax, kernelArgs, lines, plain, type RunnerScript, whoStarts } from './script.ts';

/** Counts the failed scripts, one letter for each. */
const tries = 'rackwright_tries';
/** The server of the files, in GRUB's notation. */
const from = 'rackwright_from';
const pauseSeconds = 2;

/**
 * The loader that firmware starts on a disk without a boot entry (UEFI 2.10 §3.5.1.1), and
 * Windows'.
 */
const diskLoaders = [
  '/EFI/BOOT/BOOTX64.EFI',
  '/EFI/BOOT/BOOTAA64.EFI',
  '/EFI/Microsoft/Boot/bootmgfw.efi',
];

/** The first script, of all hosts that ask at one address of ours; `root`: of our URLs there. */
export function grubStartScript(root: string): string {
  const { hostname } = new URL(root);
  return lines([
    `set ${from}=(tftp,${hostname})`,
    `set ${tries}=`,
    `while [ "$${tries}" != ${'x'.repeat(attemptsMax)} ]; do`,
    `  set ${tries}="\${${tries}}x"`,
    // GRUB fills the MAC in itself: hexadecimal digits and colons.
    `  source $${from}/boot/$net_default_mac/grub.cfg`,
    `  sleep ${pauseSeconds}`,
    'done',
    ...bootDisk,
  ]);
}

/** Loads kernel and ramdisk and starts them. Throws as the iPXE script does. */
export function grubRunnerScript(script: RunnerScript): string {
  const { decision, runner, fileUrl } = script;
  return lines([
    echo(`Rackwright: ${whoStarts(decision)} starts the runner`),
    ...load(fileUrl(runner.kernel), [fileUrl(runner.initrd)], kernelArgs(script)),
  ]);
}

/** Loads the image's kernel and ramdisks and starts them; such a host never gives up. */
export function grubImageScript(script: ImageScript): string {
  const { hostName, urls, boot } = script;
  const initrds = boot.initrds.map((hex) => urls.blob(hex));
  return lines([
    echo(`Rackwright: ${plain(hostName)} boots its image over the network`),
    ...load(urls.blob(boot.kernel), initrds, imageArgs(script)),
    ...again,
  ]);
}

/** Its kernel is not here yet: it asks again until it is. */
export function grubWaitingScript(hostName: HostName, text: string): string {
  const why = waitingText(text);
  return lines([echo(`Rackwright: ${plain(hostName)} waits for its image: ${why}`), ...again]);
}

export function grubLocalBootScript(): string {
  return lines([echo('Rackwright: no boot grant, booting the local disk'), ...bootDisk]);
}

/**
 * GRUB cannot report a failure to the firmware, which would then try the next boot option: after an
 * exit the firmware shows its menu. So GRUB starts the disk itself.
 */
const bootDisk = [
  `for loader in ${diskLoaders.join(' ')}; do`,
  '  if search --no-floppy --set=disk --file $loader; then',
  '    if chainloader ($disk)$loader; then boot; fi',
  '  fi',
  'done',
  'exit',
];

/** Ends the script, with as many tries before it as at the beginning. */
const again = [`sleep ${retrySeconds}`, `set ${tries}=`];

function load(kernel: string, initrds: readonly string[], args: readonly string[]): string[] {
  const linux = [file(kernel), ...args.map(grubWord)].join(' ');
  if (initrds.length === 0) return [`if linux ${linux}; then boot; fi`];
  const initrd = initrds.map(file).join(' ');
  return [`if linux ${linux}; then`, `  if initrd ${initrd}; then boot; fi`, 'fi'];
}

function echo(text: string): string {
  return `echo ${grubWord(text)}`;
}

function file(url: string): string {
  return `$${from}${grubWord(new URL(url).pathname)}`;
}

/**
 * A word as GRUB's shell reads it back: between single quotes no character is special, and a quote
 * itself follows a backslash outside of them. Throws on characters that no line can hold.
 */
export function grubWord(text: string): string {
  if (/\p{Cc}/u.test(text)) {
    throw new Error('a word of a GRUB script holds a control character');
  }
  return `'${text.replaceAll("'", "'\\''")}'`;
}
