/**
 * The actions of steps: for each its field, the fields beside it, and the arguments that the engine
 * gets.
 */
import {
  commandStep,
  fileStep,
  isTemplateOnly,
  RerunClass,
  scriptStep,
  webhookStep,
} from '@rackwright/messages';
import {
  argumentName,
  base64Problem,
  directoryProblem,
  diskProblem,
  environmentName,
  headerName,
  headerProblem,
  imageProblem,
  modeProblem,
  oneOf,
  partitionProblem,
  pathProblem,
  urlProblem,
  waitProblem,
} from './checks.ts';
import type { Surroundings } from './expression/references.ts';
import {
  choice,
  entriesOf,
  type Field,
  type Fields,
  fieldsOf,
  interpolated,
  itemsOf,
  type ParseContext,
  plainText,
  someUpTo,
  upTo,
} from './fields.ts';
import {
  bmcArgumentsMax,
  commandArgumentsMax,
  environmentMax,
  headersMax,
  reasonCharsMax,
  sourceBytesMax,
} from './limits.ts';
import { quoted } from './problems.ts';
import { type SecretValue, secretNameProblem, secretValue } from './secret-value.ts';
import { type TextCheck, type TextTemplate } from './text.ts';
import type { Action, ParsedArgument } from './types.ts';

/** The place of an action in the source. */
export interface ActionSource {
  readonly reading: ParseContext;
  readonly around: Surroundings;
  /** The action's own field. */
  readonly field: Field;
  /** Fields of the step that go with it. */
  readonly beside: Fields;
}

export interface ReadAction {
  /** The engine's name of it. */
  readonly step: string;
  readonly arguments: readonly ParsedArgument[];
  /** Whether data may be lost, unless the step says otherwise. */
  readonly destructive: boolean;
}

export interface ActionKind {
  /** Fields of the step that go with this action, beside those of every step. */
  readonly beside: readonly string[];
  /** How it continues after an interruption; undefined: the step says whether it is idempotent. */
  readonly rerunClass: RerunClass | undefined;
  readonly read: (source: ActionSource) => ReadAction | undefined;
}

const anyText = upTo(sourceBytesMax);
const interpreters = ['/bin/sh', '/usr/bin/node'];

const script: ActionKind = {
  beside: ['interpreter', 'environment', 'idempotent', 'destructive', 'handOff'],
  rerunClass: undefined,
  read: (source) => ({
    step: scriptStep,
    arguments: [
      ...text(source, 'script', source.field, someUpTo(sourceBytesMax)),
      ...text(
        source,
        'interpreter',
        source.beside.get('interpreter'),
        oneOf(interpreters),
        '/bin/sh',
      ),
      ...texts(source, 'environment', source.beside.get('environment'), environment),
    ],
    destructive: true,
  }),
};

const command: ActionKind = {
  beside: ['idempotent', 'destructive', 'handOff'],
  rerunClass: undefined,
  read: (source) => {
    const known = ['image', 'arguments', 'environment', 'directory'];
    const fields = mapWith(source, known, 'image');
    return {
      step: commandStep,
      arguments: [
        ...text(source, 'image', fields.get('image'), imageProblem),
        ...list(source, 'arguments', fields.get('arguments'), commandArgumentsMax),
        ...texts(source, 'environment', fields.get('environment'), environment),
        ...text(source, 'directory', fields.get('directory'), directoryProblem),
      ],
      destructive: true,
    };
  },
};

const file: ActionKind = {
  beside: ['destructive'],
  rerunClass: RerunClass.SAFE,
  read: (source) => {
    const onDisk = ['partition', 'filesystem'];
    const known = ['path', 'content', 'encoding', 'mode', 'disk', ...onDisk];
    const fields = mapWith(source, known, 'path', 'content');
    const isOnDisk = fields.has('disk');
    const { problems } = source.reading;
    const destructive = source.beside.get('destructive');
    if (isOnDisk && destructive?.node.kind === 'scalar' && destructive.node.text === 'false') {
      const message = 'cannot be false: a file on a disk always counts as destructive';
      problems.add(destructive.node.at, destructive.path, message);
    }
    for (const name of onDisk) {
      const field = fields.get(name);
      if (field !== undefined && !isOnDisk) {
        problems.add(field.at, field.path, 'goes with disk only; name the disk too');
      }
      const disk = fields.get('disk');
      if (field === undefined && disk !== undefined) {
        problems.add(disk.at, disk.path, `goes with ${onDisk.join(' and ')}; ${name} is missing`);
      }
    }
    const encodingField = fields.get('encoding');
    const encoding =
      encodingField && choice(source.reading, encodingField, ['text', 'base64'] as const);
    const content = encoding === 'base64' ? base64Problem : anyText;
    return {
      step: fileStep,
      arguments: [
        ...text(source, 'path', fields.get('path'), pathProblem),
        ...text(source, 'content', fields.get('content'), content),
        { name: 'encoding', kind: 'text', text: constant(encoding ?? 'text') },
        ...text(source, 'mode', fields.get('mode'), modeProblem, '0644'),
        ...text(source, 'disk', fields.get('disk'), diskProblem),
        ...text(source, 'partition', fields.get('partition'), partitionProblem),
        ...text(source, 'filesystem', fields.get('filesystem'), oneOf(['ext4', 'xfs', 'vfat'])),
      ],
      destructive: isOnDisk,
    };
  },
};

const powerSteps = { off: 'powerOff', on: 'powerOn', reboot: 'reboot', disk: 'bootDisk' } as const;

const power: ActionKind = {
  beside: [],
  rerunClass: RerunClass.SAFE,
  read: ({ reading, field }) => {
    const names = Object.keys(powerSteps) as (keyof typeof powerSteps)[];
    const wanted = choice(reading, field, names);
    if (wanted === undefined) return undefined;
    return { step: powerSteps[wanted], arguments: [], destructive: false };
  },
};

/** "interface.step", as agents and runners name theirs. */
const stepName = /^[a-z]+\.[a-z][a-z0-9_]*$/;

const bmc: ActionKind = {
  beside: ['arguments', 'idempotent', 'destructive'],
  rerunClass: undefined,
  read: (source) => {
    const wanted = 'must be a step of the BMC, as management.clear_event_log';
    const step = plainText(source.reading, source.field, (name) => {
      if (isTemplateOnly(name)) return `${wanted}; ${quoted(name)} runs in the runner`;
      return stepName.test(name) ? undefined : `${wanted}, not ${quoted(name)}`;
    });
    if (step === undefined) return undefined;
    const entries = named(source, source.beside.get('arguments'), {
      max: bmcArgumentsMax,
      pattern: argumentName,
      wanted: 'letters, digits and "_", beginning with a small letter',
    });
    const args = entries.map(([name, each]) => ({ name, kind: 'text', text: each }) as const);
    return { step, arguments: args, destructive: false };
  },
};

const wait: ActionKind = {
  beside: [],
  rerunClass: RerunClass.SAFE,
  read: (source) => ({
    step: 'wait',
    arguments: text(source, 'seconds', source.field, waitProblem),
    destructive: false,
  }),
};

const hold: ActionKind = {
  beside: [],
  rerunClass: RerunClass.SAFE,
  read: (source) => ({
    step: 'hold',
    arguments: text(source, 'reason', source.field, someUpTo(reasonCharsMax)),
    destructive: false,
  }),
};

const webhook: ActionKind = {
  beside: ['idempotent'],
  rerunClass: undefined,
  read: (source) => {
    const fields = mapWith(source, ['url', 'method', 'body', 'headers'], 'url');
    return {
      step: webhookStep,
      arguments: [
        ...text(source, 'url', fields.get('url'), urlProblem),
        ...text(source, 'method', fields.get('method'), oneOf(['POST', 'PUT']), 'POST'),
        ...text(source, 'body', fields.get('body'), anyText),
        ...texts(source, 'headers', fields.get('headers'), {
          max: headersMax,
          pattern: headerName,
          wanted: 'letters, digits and "-", and is none that the call sets itself, as host',
          check: headerProblem,
          secrets: 'secretHeaders',
        }),
      ],
      destructive: false,
    };
  },
};

/** All of them, by the field that chooses them. */
export const actions: Readonly<Record<Action, ActionKind>> = {
  script,
  command,
  file,
  power,
  bmc,
  wait,
  hold,
  webhook,
};

export const actionNames = Object.keys(actions) as Action[];

/** Every field that goes with some actions only. */
export const besideNames: readonly string[] = [
  ...new Set(Object.values(actions).flatMap(({ beside }) => beside)),
];

interface Names {
  readonly max: number;
  readonly pattern: RegExp;
  /** The expected form of a name, for messages. */
  readonly wanted: string;
  readonly check?: TextCheck;
  /** The argument for values that name credentials; missing: none may. */
  readonly secrets?: 'secretEnvironment' | 'secretHeaders';
}

const environment: Names = {
  max: environmentMax,
  pattern: environmentName,
  wanted: 'letters, digits and "_", and begins neither with a digit nor with RACKWRIGHT_',
  secrets: 'secretEnvironment',
};

/** The fields of an action that is a map; required ones that are missing are reported. */
function mapWith(
  { reading, field }: ActionSource,
  known: readonly string[],
  ...required: readonly string[]
): Fields {
  const fields = fieldsOf(reading, field, known);
  if (field.node.kind !== 'map') return fields;
  for (const name of required) {
    if (fields.has(name)) continue;
    reading.problems.add(field.at, field.path, `has no ${name}; it is required`);
  }
  return fields;
}

function text(
  { reading, around }: ActionSource,
  name: string,
  field: Field | undefined,
  check: TextCheck,
  otherwise?: string,
): ParsedArgument[] {
  if (field === undefined) {
    return otherwise === undefined ? [] : [{ name, kind: 'text', text: constant(otherwise) }];
  }
  // Modes and partitions are often written without quotes.
  const isLenient = name === 'mode' || name === 'partition';
  const read = interpolated(reading, field, around, check, { lenient: isLenient });
  return read === undefined ? [] : [{ name, kind: 'text', text: read }];
}

function list(
  { reading, around }: ActionSource,
  name: string,
  field: Field | undefined,
  max: number,
): ParsedArgument[] {
  if (field === undefined) return [];
  const items = itemsOf(reading, field);
  if (items.length > max) {
    const message = `has ${items.length} entries; at most ${max} are taken`;
    reading.problems.add(field.at, field.path, message);
  }
  const read = items.map((item) => interpolated(reading, item, around, anyText, { lenient: true }));
  return [{ name, kind: 'list', items: read.filter((each) => each !== undefined) }];
}

function texts(
  source: ActionSource,
  name: string,
  field: Field | undefined,
  names: Names,
): ParsedArgument[] {
  if (field === undefined) return [];
  const entries = named(source, field, names);
  return [{ name, kind: 'map', entries }, ...secretsOf(source, field, names)];
}

/** The values that name credentials, as one argument of JSON: names, and no secret. */
function secretsOf(
  { reading }: ActionSource,
  field: Field,
  { secrets }: Names,
): readonly ParsedArgument[] {
  if (secrets === undefined || field.node.kind !== 'map') return [];
  const found: Record<string, SecretValue> = {};
  const isVariable = secrets === 'secretEnvironment';
  for (const entry of field.node.entries) {
    if (entry.value.kind !== 'map') continue;
    const { key: name, at, value: node } = entry;
    const path = `${field.path}.${name}`;
    const problem = isVariable ? secretNameProblem(name) : undefined;
    if (problem !== undefined) reading.problems.add(at, path, problem);
    const read = secretValue(reading, { node, at, path }, !isVariable);
    if (read !== undefined) found[name] = read;
  }
  if (Object.keys(found).length === 0) return [];
  return [{ name: secrets, kind: 'text', text: constant(JSON.stringify(found)) }];
}

function named(
  { reading, around }: ActionSource,
  field: Field | undefined,
  { max, pattern, wanted, check = anyText, secrets }: Names,
): readonly (readonly [string, TextTemplate])[] {
  if (field === undefined) return [];
  const entries = entriesOf(reading, field);
  const { problems } = reading;
  if (entries.length > max) {
    const message = `has ${entries.length} entries; at most ${max} are taken`;
    problems.add(field.at, field.path, message);
  }
  return entries.flatMap((entry) => {
    if (!pattern.test(entry.name)) {
      problems.add(entry.at, entry.path, `${quoted(entry.name)} is no name here; it has ${wanted}`);
    }
    if (secrets !== undefined && entry.node.kind === 'map') return [];
    const read = interpolated(reading, entry, around, check, { lenient: true });
    return read === undefined ? [] : [[entry.name, read] as const];
  });
}

function constant(value: string): TextTemplate {
  return {
    pieces: [value],
    constant: value,
    written: value,
    check: () => undefined,
    path: '',
    at: 0,
  };
}
