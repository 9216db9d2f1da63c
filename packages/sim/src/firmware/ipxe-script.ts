/**
 * Runs iPXE scripts: the commands that boot scripts here use, with iPXE's rules for `&&`, `||`,
 * labels and `${settings}` (ipxe.org/scripting).
 *
 * I1 A line whose last command fails ends the script, unless it ends in `||`.
 * I2 An unknown command fails, as in iPXE: a script that this does not know is not half run.
 */
import { errorText } from '@rackwright/platform';

/** What a script can do to the machine. */
export interface IpxeActions {
  /** Throws when the file cannot be had. */
  fetch(url: string): Promise<Uint8Array>;
  sleep(durationMs: number): Promise<void>;
  print(text: string): void;
}

export interface LoadedImage {
  readonly name: string;
  readonly arguments: string;
  readonly bytes: Uint8Array;
}

export type IpxeEnd =
  | { readonly kind: 'boot'; readonly kernel: LoadedImage; readonly others: readonly LoadedImage[] }
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'failed'; readonly message: string };

/** A script that loops for ever is a fault of its author. */
const commandsMax = 1_000;

/** Runs the text of a script to its end. */
export async function runIpxeScript(text: string, actions: IpxeActions): Promise<IpxeEnd> {
  if (!text.startsWith('#!ipxe')) return { kind: 'failed', message: 'this is no iPXE script' };
  const script = new Script(text.split('\n'), actions);
  return await script.run();
}

class Script {
  readonly #lines: readonly string[];
  readonly #actions: IpxeActions;
  readonly #settings = new Map<string, string>();
  #images: { kernel: LoadedImage | undefined; others: LoadedImage[] } = freeImages();
  #next = 0;
  #commands = 0;
  #end: IpxeEnd | undefined;
  #fault = '';

  constructor(lines: readonly string[], actions: IpxeActions) {
    this.#lines = lines;
    this.#actions = actions;
  }

  async run(): Promise<IpxeEnd> {
    while (this.#next < this.#lines.length) {
      const line = (this.#lines[this.#next] ?? '').trim();
      this.#next += 1;
      if (line === '' || line.startsWith('#') || line.startsWith(':')) continue;
      const succeeded = await this.#runLine(line);
      if (this.#end !== undefined) return this.#end;
      if (!succeeded) return { kind: 'failed', message: `"${line}": ${this.#fault}` };
    }
    return { kind: 'exit', code: 0 };
  }

  /** Whether the line as a whole succeeded (I1). */
  async #runLine(line: string): Promise<boolean> {
    const words = line.split(/\s+/);
    let succeeded = true;
    let operator = '&&';
    for (let at = 0; at <= words.length; ) {
      const found = words.findIndex((word, index) => index >= at && /^(&&|\|\|)$/.test(word));
      const end = found === -1 ? words.length : found;
      if (succeeded === (operator === '&&')) {
        succeeded = await this.#runCommand(words.slice(at, end).map((word) => this.#expand(word)));
        if (this.#end !== undefined) return true;
      }
      if (found === -1) break;
      operator = words[found] ?? '';
      at = found + 1;
    }
    return succeeded;
  }

  #expand(word: string): string {
    return word.replace(/\$\{([^}:]+)(:[^}]*)?\}/g, (_, name: string) => {
      return this.#settings.get(name) ?? '';
    });
  }

  async #runCommand([command = '', ...args]: readonly string[]): Promise<boolean> {
    this.#commands += 1;
    if (this.#commands > commandsMax) {
      this.#end = { kind: 'failed', message: `more than ${commandsMax} commands` };
      return false;
    }
    switch (command) {
      case '':
        return true;
      case 'echo':
        this.#actions.print(args.join(' '));
        return true;
      case 'set':
      case 'inc':
        return this.#change(command, args);
      case 'iseq':
        return args[0] === args[1] || this.#fail(`${args.join(' and ')} differ`);
      case 'goto':
        return this.#goto(args[0] ?? '');
      case 'sleep':
        await this.#actions.sleep(Number(args[0]) * 1_000);
        return true;
      case 'exit':
        this.#end = { kind: 'exit', code: Number(args[0] ?? 0) };
        return true;
      default:
        return await this.#runImageCommand(command, args);
    }
  }

  async #runImageCommand(command: string, args: readonly string[]): Promise<boolean> {
    switch (command) {
      case 'kernel':
      case 'initrd':
        return await this.#load(command, args);
      case 'imgfree':
        this.#images = freeImages();
        return true;
      case 'boot': {
        const { kernel, others } = this.#images;
        if (kernel === undefined) return this.#fail('no kernel has been loaded');
        this.#end = { kind: 'boot', kernel, others };
        return true;
      }
      default:
        return this.#fail(`${command}: command not found`);
    }
  }

  #change(command: 'set' | 'inc', [typed = '', value]: readonly string[]): boolean {
    const name = typed.replace(/:.*$/, '');
    const before = Number(this.#settings.get(name) ?? 0);
    this.#settings.set(name, command === 'set' ? (value ?? '') : String(before + 1));
    return true;
  }

  #goto(label: string): boolean {
    const at = this.#lines.findIndex((line) => line.trim() === `:${label}`);
    if (at === -1) return this.#fail(`there is no label ${label}`);
    this.#next = at + 1;
    return true;
  }

  async #load(command: 'kernel' | 'initrd', args: readonly string[]): Promise<boolean> {
    const named = args[0] === '--name';
    const [url = '', ...rest] = named ? args.slice(2) : args;
    const name = (named ? args[1] : undefined) ?? url.replace(/^.*\//, '');
    try {
      const image = { name, arguments: rest.join(' '), bytes: await this.#actions.fetch(url) };
      if (command === 'kernel') this.#images.kernel = image;
      else this.#images.others.push(image);
      return true;
    } catch (error) {
      return this.#fail(errorText(error));
    }
  }

  #fail(message: string): false {
    this.#fault = message;
    this.#actions.print(message);
    return false;
  }
}

function freeImages(): { kernel: LoadedImage | undefined; others: LoadedImage[] } {
  return { kernel: undefined, others: [] };
}
