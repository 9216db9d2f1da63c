/**
 * Kernel arguments of an image as words of a boot script. iPXE expands `${…}` and interprets `;`,
 * `&&` and `||` that stand alone: an argument with these is refused, never altered.
 */
export type NetbootArguments =
  | { readonly kind: 'ok'; readonly args: readonly string[] }
  | { readonly kind: 'bad'; readonly problem: string };

const wordForm = /^[A-Za-z0-9][A-Za-z0-9._:,;=@%+/~?*!()-]*$/;

export function netbootArguments(kernelArguments: string): NetbootArguments {
  const args = kernelArguments.split(' ').filter((word) => word !== '');
  const strange = args.find((word) => !wordForm.test(word));
  if (strange === undefined) return { kind: 'ok', args };
  const shown = JSON.stringify(strange.slice(0, 100));
  const problem = `the image has the kernel argument ${shown}, which cannot stand in a boot script`;
  return { kind: 'bad', problem };
}
