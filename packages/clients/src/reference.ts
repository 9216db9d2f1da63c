/**
 * The reference of the operators' API, from compiled definitions with their comments.
 *
 * Must not: say anything of its own about a method, a message or a field.
 */
import type {
  DescriptorProto,
  EnumDescriptorProto,
  FieldDescriptorProto,
  FileDescriptorProto,
  FileDescriptorSet,
  ServiceDescriptorProto,
} from '@bufbuild/protobuf/wkt';
import {
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from '@bufbuild/protobuf/wkt';

/** Numbers of the fields of descriptors, by which comments are found (descriptor.proto). */
const at = {
  ...{ message: 4, enum: 5, service: 6, method: 2, field: 2, nested: 3, nestedEnum: 4, value: 2 },
} as const;

const head = [
  '# API reference',
  '',
  '<!-- Generated from proto/ by `npm run gen`. Edit the definitions. -->',
  '',
  'Each method is called by gRPC, by gRPC-Web, and as `POST /SERVICE/METHOD` with JSON',
  '([how](README.md)). A test keeps this page true.',
  '',
];

/** The page, of the files of this package. */
export function referenceOf(set: FileDescriptorSet, packageName: string): string {
  const files = set.file
    .filter((file) => file.package === packageName)
    .sort((one, other) => one.name.localeCompare(other.name));
  const sections = files.map((file) => new FilePage(file).lines());
  const index = files.flatMap((file) =>
    file.service.map(({ name }) => `- [${name}](#${name.toLowerCase()})`),
  );
  return `${[...head, ...index, '', ...sections.flat()].join('\n').trimEnd()}\n`;
}

class FilePage {
  readonly #file: FileDescriptorProto;
  readonly #comments: ReadonlyMap<string, string>;

  constructor(file: FileDescriptorProto) {
    this.#file = file;
    const locations = file.sourceCodeInfo?.location ?? [];
    this.#comments = new Map(
      locations.map(({ path, leadingComments }) => [path.join('.'), leadingComments]),
    );
  }

  lines(): string[] {
    const { service, messageType, enumType } = this.#file;
    return [
      ...service.flatMap((each, index) => this.#service(each, [at.service, index])),
      ...messageType.flatMap((each, index) => this.#message(each, [at.message, index], '')),
      ...enumType.flatMap((each, index) => this.#enum(each, [at.enum, index], '')),
    ];
  }

  #service({ name, method }: ServiceDescriptorProto, path: readonly number[]): string[] {
    const rows = method.map(({ name: own, inputType, outputType, serverStreaming }, index) => {
      const answer = `${serverStreaming ? 'stream of ' : ''}${linkTo(outputType)}`;
      const says = this.#cell([...path, at.method, index]);
      return `| \`${own}\` | ${linkTo(inputType)} | ${answer} | ${says} |`;
    });
    const table = ['| method | takes | answers | |', '|---|---|---|---|', ...rows];
    return [`## ${name}`, '', ...this.#text(path), ...table, ''];
  }

  #message(message: DescriptorProto, path: readonly number[], outer: string): string[] {
    if (message.options?.mapEntry === true) return [];
    const name = `${outer}${message.name}`;
    const rows = message.field.map((field, index) => {
      const says = this.#cell([...path, at.field, index]);
      return `| \`${field.name}\` | ${typeOf(field, message)} | ${says} |`;
    });
    const table = rows.length === 0 ? ['No fields.'] : ['| field | type | |', '|---|---|---|'];
    return [
      ...[`### ${name}`, '', ...this.#text(path), ...table, ...rows, ''],
      ...message.nestedType.flatMap((each, index) =>
        this.#message(each, [...path, at.nested, index], `${name}.`),
      ),
      ...message.enumType.flatMap((each, index) =>
        this.#enum(each, [...path, at.nestedEnum, index], `${name}.`),
      ),
    ];
  }

  #enum({ name, value }: EnumDescriptorProto, path: readonly number[], outer: string): string[] {
    const rows = value.map(
      (each, index) => `| \`${each.name}\` | ${this.#cell([...path, at.value, index])} |`,
    );
    return [
      `### ${outer}${name}`,
      '',
      ...this.#text(path),
      '| value | |',
      '|---|---|',
      ...rows,
      '',
    ];
  }

  #comment(path: readonly number[]): string {
    return (this.#comments.get(path.join('.')) ?? '').replaceAll(/\s+/g, ' ').trim();
  }

  #text(path: readonly number[]): string[] {
    const text = this.#comment(path);
    return text === '' ? [] : [text, ''];
  }

  /** The text in a form that is valid in a table. */
  #cell(path: readonly number[]): string {
    return this.#comment(path).replaceAll('|', '\\|').replaceAll('<', '&lt;');
  }
}

/** ".rackwright.v1.Host.Kind" → a link to its heading, or the name alone of another package. */
function linkTo(typeName: string): string {
  const own = /^\.rackwright\.v1\.(.+)$/.exec(typeName)?.[1];
  if (own === undefined) return `\`${typeName.slice(1)}\``;
  return `[${own}](#${own.toLowerCase().replaceAll('.', '')})`;
}

function typeOf(field: FieldDescriptorProto, { nestedType }: DescriptorProto): string {
  const entry = nestedType.find(
    ({ name, options }) => options?.mapEntry === true && field.typeName.endsWith(`.${name}`),
  );
  const [key, value] = entry?.field ?? [];
  if (key !== undefined && value !== undefined) return `map of ${bare(key)} to ${bare(value)}`;
  const own = bare(field);
  if (field.label === Label.REPEATED) return `list of ${own}`;
  return field.proto3Optional ? `optional ${own}` : own;
}

function bare({ type, typeName }: FieldDescriptorProto): string {
  if (typeName !== '') return linkTo(typeName);
  return Type[type].toLowerCase();
}
