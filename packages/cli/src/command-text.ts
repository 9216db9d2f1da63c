/**
 * The texts about a wrong command line: what is wrong with it, and what would be right. Every
 * sentence names the word that was typed, and its command.
 */
import { errorText, nearestName } from '@rackwright/platform';
import {
  AliasNotFoundError,
  ArgumentParseError,
  type Command,
  EnumValidationError,
  FlagNotFoundError,
  InvalidNegatedFlagSyntaxError,
  type RouteMap,
  text_en,
  UnexpectedFlagError,
  UnexpectedPositionalError,
  UnsatisfiedFlagError,
  UnsatisfiedPositionalError,
} from '@stricli/core';
import type { CliContext } from './command-io.ts';

type Target = Command<CliContext> | RouteMap<CliContext>;

/** The command that a line begins with. */
export interface TypedCommand {
  /** "rackwright", "host", "list" */
  readonly words: readonly string[];
  readonly target: Target;
}

/** Follows the words of a line as far as they name commands. */
export function typedCommand(root: RouteMap<CliContext>, args: readonly string[]): TypedCommand {
  const words = ['rackwright'];
  let target: Target = root;
  for (const word of args) {
    const next: Target | undefined = isRoutes(target)
      ? target.getRoutingTargetForInput(word)
      : undefined;
    if (next === undefined) break;
    words.push(word);
    target = next;
  }
  return { words, target };
}

/** Arguments of a command that cannot be read. */
export function textForArguments(typed: TypedCommand, error: unknown): string {
  return `rackwright: ${argumentText(typed, error)}`;
}

/** What `--wait` is for where it is no flag. */
const toWait = '`rackwright host watch HOST --until available` waits';

function argumentText(typed: TypedCommand, error: unknown): string {
  const command = `\`${typed.words.join(' ')}\``;
  const help = `\`${typed.words.join(' ')} --help\``;
  if (error instanceof FlagNotFoundError) {
    const flags = flagsOf(typed).map(kebab);
    const near = nearFlag(kebab(error.input), flags);
    const right = near === undefined ? `${help} lists what it takes` : `did you mean --${near}?`;
    const isWait = kebab(error.input) === 'wait' && typed.words[1] === 'host';
    return `${command} has no flag --${error.input}; ${isWait ? toWait : right}`;
  }
  if (error instanceof AliasNotFoundError) {
    return `${command} has no flag -${error.input}; ${help} lists what it takes`;
  }
  if (error instanceof EnumValidationError) {
    const { values, input } = error;
    const near = nearestName(input, values);
    const hint = near === undefined ? '' : `; did you mean ${near}?`;
    const flag = `--${kebab(error.externalFlagName)}`;
    return `${flag} is "${input}"; it must be ${orList(values)}${hint}`;
  }
  if (error instanceof ArgumentParseError) {
    const { exception } = error;
    const name = kebab(error.externalFlagNameOrPlaceholder);
    const flag = flagsOf(typed).map(kebab).includes(name) ? `--${name}` : name;
    return `${flag}: ${errorText(exception)}`;
  }
  if (error instanceof UnsatisfiedFlagError) {
    const flag = `--${kebab(error.externalFlagName)}`;
    return error.nextFlagName === undefined
      ? `${flag} is missing; ${help} says what it takes`
      : `${flag} needs a value before --${kebab(error.nextFlagName)}`;
  }
  if (error instanceof UnsatisfiedPositionalError) {
    return `Which ${error.placeholder}? \`${usageOf(typed)}\``;
  }
  if (error instanceof UnexpectedPositionalError) {
    const usage = usageOf(typed);
    const isBare = usage === typed.words.join(' ');
    const right = isBare ? `${help} lists what it takes` : `\`${usage}\``;
    return `"${error.input}" is one argument too many; ${right}`;
  }
  if (error instanceof UnexpectedFlagError) {
    const { externalFlagName, previousInput, input } = error;
    return `--${kebab(externalFlagName)} is given twice, as "${previousInput}" and "${input}"`;
  }
  if (error instanceof InvalidNegatedFlagSyntaxError) {
    return `--${kebab(error.externalFlagName)} takes no value; "${error.valueText}" is one`;
  }
  return errorText(error);
}

/** The text about a word that names no command of `typed`. */
export function textForCommand(typed: TypedCommand, input: string): string {
  const known = isRoutes(typed.target) ? typed.target.getAllEntries() : [];
  const names = known.filter(({ hidden }) => !hidden).map(({ name }) => name.original);
  const near = nearestName(input, names);
  const command = typed.words.join(' ');
  const right =
    near === undefined
      ? `\`${command} --help\` lists them`
      : `did you mean \`${command} ${near}\`?`;
  return `rackwright: \`${command}\` has no command "${input}"; ${right}`;
}

/** Stricli's words where there are none of ours. */
export const otherTexts = text_en;

/** "rackwright host get HOST" */
function usageOf({ words, target }: TypedCommand): string {
  const positional = isRoutes(target) ? undefined : positionalOf(target);
  const names = positional?.kind === 'tuple' ? positional.parameters : [];
  const shown = names.map(({ placeholder = 'argument', optional }) =>
    optional === true ? `[${placeholder.toUpperCase()}]` : placeholder.toUpperCase(),
  );
  return [...words, ...shown].join(' ');
}

function positionalOf({ parameters }: Command<CliContext>) {
  return parameters.positional;
}

function flagsOf({ target }: TypedCommand): string[] {
  return isRoutes(target) ? [] : Object.keys(target.parameters.flags ?? {});
}

/** The start of a flag says more than how many letters differ. */
function nearFlag(given: string, flags: readonly string[]): string | undefined {
  const begun = flags.filter((flag) => flag.startsWith(given));
  return begun.length === 1 ? begun[0] : nearestName(given, flags);
}

function isRoutes(target: Target): target is RouteMap<CliContext> {
  return 'getRoutingTargetForInput' in target;
}

/** "a, b or c" */
export function orList(words: readonly string[]): string {
  const last = words.at(-1) ?? '';
  return words.length < 2 ? last : `${words.slice(0, -1).join(', ')} or ${last}`;
}

function kebab(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
