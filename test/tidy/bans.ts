/**
 * Words and calls that may not stand in our code, each with what to write instead.
 *
 * T1 Time, chance, files, sockets and the process are reached through the platform (DESIGN §11):
 *    otherwise the simulation cannot replay a run.
 */
import { codeOf } from './code-text.ts';
import { isWorldly } from './layers.ts';
import { type Finding, isTestCode, type SourceFile } from './sources.ts';

interface Ban {
  readonly pattern: RegExp;
  readonly message: string;
}

/** Bans that keep runs repeatable; tests and worldly places are free of them. */
const worldBans: readonly Ban[] = [
  { pattern: /\bDate\.now\b|\bnew Date\(\)/, message: 'reads the clock; take a Clock: nowMs()' },
  {
    pattern: /\bperformance\b|\bhrtime\b/,
    message: 'reads a clock; take a Clock: suspendAwareMs()',
  },
  {
    pattern: /\b(set|clear)(Timeout|Interval|Immediate)\b/,
    message: 'is a timer; take a Clock: after()',
  },
  { pattern: /\bAbortSignal\.timeout\b/, message: 'is a timer; take a Clock: after()' },
  {
    pattern: /\bMath\.random\b|\brandom(UUID|Bytes|Int|FillSync)\b|\bgetRandomValues\b/,
    message: 'is chance; take a Random',
  },
  { pattern: /\bconsole\./, message: 'writes to the terminal; take a Log' },
  {
    pattern:
      /(?<![\w.])process\.(env|argv|exit|exitCode|on|once|kill|pid|stdin|stdout|stderr|cwd)\b/,
    message: 'is the process; only main.ts and the platform know it',
  },
  {
    pattern: /\bglobalThis\.fetch\b|(?<![\w.])fetch\((['"`]|url|new URL)/,
    message: 'opens a socket; take it from the platform',
  },
];

/** Bans for all code, tests included. */
const codeBans: readonly Ban[] = [
  { pattern: /^export default\b/, message: 'is a default export; name it' },
  {
    pattern: /\b(test|it|describe|suite)(\.\w+)*\.only\b/,
    message: 'silences every other test; remove .only',
  },
  {
    pattern: /\b(test|it|describe|suite)(\.\w+)*\.(skip|skipIf|runIf|todo|fails)\b/,
    message: 'skips without saying why; call context.skip(reason) in the test',
  },
  {
    pattern: /\bas any\b|: any\b|<any>/,
    message: 'switches the types off; use unknown and narrow',
  },
  { pattern: /\bas unknown as\b/, message: 'forces a type; narrow, or build the value' },
  { pattern: /\bvi\.(mock|doMock)\(/, message: 'mocks our own code; pass a platform instead' },
];

/** What others may use is named; generated code has the names of proto/. */
const exportBans: readonly Ban[] = [
  {
    pattern: /^export \* from '(?!\.\/gen\/)/,
    message: 'lets out whatever comes; name what is for others',
  },
];

/**
 * T2 No text decides: a message is for people, and a failure has a type and details for programs.
 *    The output of foreign programs has no other form: it is parsed in these places, into a union.
 */
const messageBans: readonly Ban[] = [
  {
    pattern:
      /\b(message|detail|backendText|givenUpReason|reason)\??\.(includes|startsWith|endsWith|match|matchAll|search|indexOf)\(/,
    message: 'decides by a text for people; give the fact a type or a field',
  },
  {
    pattern: /\/[a-z]*\.(test|exec)\((\w+\.)*(message|detail|words|backendText|reason)\b/,
    message: 'decides by a text for people; give the fact a type or a field',
  },
  {
    pattern: /\b(message|detail|givenUpReason)\)? (===|!==) ['"`][^'"`]/,
    message: 'compares a text for people; give the fact a type or a field',
  },
];
const parsersOfForeignText: readonly RegExp[] = [
  // Redfish services and ipmitool.
  /^packages\/bmc\/src\//,
  // Node's TLS, and the tools of Linux.
  /^packages\/platform\/src\/node\//,
  /^packages\/runner\/src\/linux\//,
  // grpc-js, and the ERROR of a TFTP client.
  /^packages\/rpc\/src\/client\/client\.ts$/,
  /^packages\/tftp\/src\/transfer\.ts$/,
];

/**
 * The same of texts that stand in a variable, in the code that decides about hosts. A `reason` may
 * be a code of a closed list: it is compared with such a word, not with a sentence and not with
 * another text. Things that have a reason are told apart by a kind or an id.
 */
const byText = 'decides by a text; give the fact a type or a field';
const textBans: readonly Ban[] = [
  {
    pattern: /\b(fate|text|said|words|reason)\)?\??\.(startsWith|endsWith|includes)\(/,
    message: byText,
  },
  {
    pattern: /(?<!\btypeof )\b(fate|text|said|words)\)? (===|!==) ['"`][^'"`]/,
    message: byText,
  },
  // What clears a fault is `Fault.clearing`; its text is for people.
  { pattern: /\bclearedBy\)? (===|!==) /, message: byText },
  { pattern: /\breason (===|!==) ['"`][^'"`]* /, message: byText },
  { pattern: /\.message\)? (===|!==) (?!undefined\b)\w/, message: byText },
  {
    pattern: /\breason (===|!==) (?!undefined\b)(\w+\??\.)*[a-z]\w*\b(?![?.])/,
    message: byText,
  },
  {
    pattern: /(?<!\btypeof )\b(?!reason\b)[a-z]\w* (===|!==) (\w+\??\.)*reason\b/,
    message: byText,
  },
];
const decidesAboutHosts = /^(controlplane|agent)\/src\//;
const readsStatus = /^(controlplane|agent|packages\/(cli|console))\/src\//;

/** The kind of a step is a field of the steps' table, or a predicate beside its name. */
const stepNameBans: readonly Ban[] = [
  {
    pattern: /\.startsWith\(['"`](power|run)\./,
    message: 'decides by a text in a name; take isTemplateOnly() or a field of the steps',
  },
];

/**
 * An empty text that stands for none is read in one place, whose name says what it means. Outside
 * that place `?? ''` counts, too: before the comparison, and for a variable.
 */
const readersOfEmptyTexts: readonly { readonly field: string; readonly take: string }[] = [
  { field: 'skippedBecause', take: 'isPlannedToSkip()' },
  { field: 'title', take: 'isOfTemplate()' },
  { field: 'givenUpReason', take: 'isGivenUp()' },
  { field: 'duplicateAgent', take: 'duplicateAgentOf()' },
  { field: 'storeRefused', take: 'storeRefusalOf()' },
  { field: 'refused', take: 'discoveryRefusalOf(), or the refusal of a plan' },
  { field: 'notRunnable', take: 'its kind' },
  { field: 'stoppedReason', take: 'isStopped()' },
  { field: 'bootOldDiskReason', take: 'oldDiskPermission()' },
  { field: 'blockedBecause', take: 'the blocker, before it becomes the text' },
  { field: 'planReason', take: 'the hash of the plan' },
];
const emptyTextBans: readonly Ban[] = readersOfEmptyTexts.map(({ field, take }) => ({
  pattern: new RegExp(
    `\\b${field}( \\?\\? '')?\\)? (===|!==) ''|\\bconst \\w+ = .*\\b${field} \\?\\? ''`,
  ),
  message: `reads an empty text; take ${take}`,
}));
const placesOfEmptyTexts = [
  'host/pass/step-names',
  'host/power/pending-power',
  'host/run/step-parts',
].map((each) => `controlplane/src/${each}.ts`);

/** Where such a text has no other form, because a person or another program wrote it. */
export const parsersOfInput: readonly { readonly place: RegExp; readonly reason: string }[] = [
  { place: /^controlplane\/src\/access\/sign-in\.ts$/, reason: 'the token that a caller shows' },
  { place: /^controlplane\/src\/filter\//, reason: 'the filter that a person writes' },
  {
    place: /^controlplane\/src\/host\/request\/named-hold\.ts$/,
    reason: 'the words by which a person names a hold',
  },
  { place: /^controlplane\/src\/host\/spec\//, reason: 'the spec that a person writes' },
  { place: /^controlplane\/src\/steps\/reach\.ts$/, reason: 'what a person lets steps reach' },
];

/**
 * T7 A word of a closed list that the wire carries as a text has its list in the messages. It is
 *    compared by the functions beside that list, so that a misspelled word does not compile.
 */
const unchecked = 'compares a word that no compiler checks; take';
const hostWait = `${unchecked} hostWaitOf() or pendingWaitOf()`;
const wordListBans: readonly Ban[] = [
  { pattern: /\bwaiting\??\.reason\)? (===|!==) /, message: hostWait },
  { pattern: /(\.(has|includes)|\bswitch )\((\w+\??\.)*waiting\??\.reason\b/, message: hostWait },
  { pattern: / = (\w+\??\.)*waiting\??\.reason\b/, message: hostWait },
  { pattern: /\breason\b[^}]*\} = (\w+\??\.)*waiting\b/, message: hostWait },
  {
    pattern: /\bfaults\b.*\btype\)? (===|!==) /,
    message: `${unchecked} faultOfType() or hasFault()`,
  },
  {
    pattern: /\bconditions\b.*\btype\)? (===|!==) /,
    message: `${unchecked} poolCondition() or isPoolBecause()`,
  },
];
const wordLists = /^packages\/messages\/src\/(waits|host-faults|pool-conditions)\.ts$/;

/**
 * T8 Who did it is an `Actor`: its module alone makes the text of one and looks at it, so that the
 *    kinds are told apart by `actorKind()`. Two actors are compared with each other as they are.
 */
const actorTexts = "looks at an actor's text; take actorKind() or a function beside it";
const actorBans: readonly Ban[] = [
  {
    pattern:
      /\b(\w*[aA]ctor|by|\w+edBy)\)?\??\.(startsWith|endsWith|includes|slice|split|indexOf|match|replace)\(/,
    message: actorTexts,
  },
  {
    pattern:
      /\b(\w*[aA]ctor|by|\w+edBy) (===|!==) ['"`](system|goal|deletion|policy|plan|agent|\w+[:/])/,
    message: actorTexts,
  },
  { pattern: /\/[a-z]*\.(test|exec)\((\w+\??\.)*(\w*[aA]ctor|by|\w+edBy)\)/, message: actorTexts },
  { pattern: /(===|!==) actors\.(?!unknown\b)/, message: actorTexts },
  { pattern: /\bisSystem\(readActor\(/, message: 'reads the field itself; take isBySystem()' },
  {
    pattern: /['`](user|token|oidc|agent|system):(\$\{|[\w ]+['`])/,
    message: 'makes an actor of a text; take its maker, as userActor()',
  },
];
const moduleOfActors = 'packages/messages/src/actors.ts';

/** T4 A log line keeps what was caught, with its stack and causes. */
const logBans: readonly Ban[] = [
  {
    pattern: /\b(error|cause): (\w+\.message [},]|errorText\()/,
    message: 'drops stack and causes; give the log what was caught as its third argument',
  },
];

/** T6 One function makes a text of what was caught, with its causes. */
const keepsCauses = 'drops causes; take errorText() of the platform, or throw with { cause }';
const caughtBans: readonly Ban[] = [
  { pattern: /\bString\((error|err|cause|caught|thrown)\)/, message: keepsCauses },
  {
    pattern: /\b(\w+) instanceof Error \? \W*\1\.(message|stack|name)\b/,
    message: keepsCauses,
  },
];
const textOfCaught = 'packages/platform/src/error-text.ts';

/** T3 One table moves a host: its rows are the only writers of these fields. */
const stateBans: readonly Ban[] = [
  {
    pattern: /(\b|\w)[sS]tatus[?!]?\.(state|dirty|useEpoch) (\+=|\?\?=|=(?!=))/,
    message: 'moves a host; give pass/transitions.ts a row, and call move()',
  },
  {
    pattern: /\bassign\(([^{]|\{\})*[sS]tatus([^{]|\{\})*\{[^}]*\b(state|dirty|useEpoch)\b/,
    message: 'moves a host; give pass/transitions.ts a row, and call move()',
  },
];
const tableOfHosts = 'controlplane/src/host/pass/transitions.ts';

/** T5 A protocol or driver that is added is noticed where it counts: no value is the other one. */
const assumption = 'assumes what the others are; switch over all of them, or give a table a row';
const assumptionBans: readonly Ban[] = [
  {
    pattern: /\b(protocol|driver) (===|!==) ('(ipmi|redfish|sqlite|nats)'|BmcProtocol\.\w+)/,
    message: assumption,
  },
  { pattern: /(\?\?|\|\|) '(ipmi|redfish|sqlite|nats)'/, message: assumption },
];

/** Bans for words of every kind, comments included; this folder has to name them. */
const wordBans: readonly Ban[] = [
  {
    // A field of log lines keeps its name.
    pattern: /([Bb]elie(f|ve)|[Bb]elieving)(?!d:)/,
    message:
      'is no term; write trust of certificates and agents, accept or take as true of the rest',
  },
  {
    pattern: /\b(FIXME|TODO|XXX)\b/,
    message: 'is unfinished work; finish it or say in prose what is missing',
  },
  {
    pattern: /(@ts-(ignore|nocheck|expect-error)|eslint-disable|oxlint-disable|biome-ignore)/,
    message: 'switches a check off; fix the cause',
  },
];

/** Calls and words of one file that are banned where it stands. */
export function findBans(file: SourceFile): Finding[] {
  const bans = isTestCode(file.path) || isWorldly(file.path) ? [] : worldBans;
  const mayRead =
    isTestCode(file.path) || parsersOfForeignText.some((each) => each.test(file.path));
  const exemptFromDefault = /(^|\/)vitest\.config\.ts$/.test(file.path);
  return [
    ...match(file, codeOf(file.text), [...bans, ...codeBans.slice(exemptFromDefault ? 1 : 0)]),
    ...match(file, file.text, exportBans),
    ...(mayRead ? [] : match(file, file.text, messageBans)),
    ...(mayDecideByText(file.path) ? [] : match(file, file.text, textBans)),
    ...(isTestCode(file.path) ? [] : match(file, file.text, stepNameBans)),
    ...(mayReadEmptyTexts(file.path) ? [] : match(file, file.text, emptyTextBans)),
    ...(mayCompareWords(file.path) ? [] : match(file, file.text, wordListBans)),
    ...(mayReadActors(file.path) ? [] : match(file, file.text, actorBans)),
    ...(isTestCode(file.path) ? [] : match(file, file.text, logBans)),
    ...(mayMakeText(file.path) ? [] : match(file, file.text, caughtBans)),
    ...(isTestCode(file.path) ? [] : match(file, file.text, assumptionBans)),
    ...(mayMove(file.path) ? [] : match(file, file.text, stateBans)),
    ...(file.path.startsWith('test/tidy/') ? [] : match(file, file.text, wordBans)),
  ];
}

function mayDecideByText(path: string): boolean {
  if (!decidesAboutHosts.test(path) || isTestCode(path)) return true;
  return parsersOfInput.some(({ place }) => place.test(path));
}

function mayReadEmptyTexts(path: string): boolean {
  return !readsStatus.test(path) || isTestCode(path) || placesOfEmptyTexts.includes(path);
}

function mayCompareWords(path: string): boolean {
  return wordLists.test(path) || path.startsWith('test/tidy/');
}

function mayReadActors(path: string): boolean {
  return path === moduleOfActors || isTestCode(path);
}

function mayMakeText(path: string): boolean {
  return path === textOfCaught || isTestCode(path);
}

function mayMove(path: string): boolean {
  return !path.startsWith('controlplane/src/') || path === tableOfHosts || isTestCode(path);
}

function match(file: SourceFile, text: string, bans: readonly Ban[]): Finding[] {
  return text.split('\n').flatMap((line, index) =>
    bans.flatMap(({ pattern, message }) => {
      const found = pattern.exec(line)?.[0];
      if (found === undefined) return [];
      return [{ path: file.path, line: index + 1, message: `"${found.trim()}" ${message}` }];
    }),
  );
}
