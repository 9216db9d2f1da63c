/** An event in one line. */
import { type DescField, ScalarType } from '@bufbuild/protobuf';
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import { type Event, EventSchema, EventTypeSchema, enumWord } from '@rackwright/messages';
import { clean } from './text.ts';

/** "hosts/h1  run-ended  kind=clean number=3 outcome=succeeded  (user:admin)" */
export function eventText(event: Event): string {
  const { subject, type, actor } = event;
  const typeWord = enumWord(EventTypeSchema, type) ?? String(type);
  const by = actor === '' ? [] : [`(${actor})`];
  return clean([subject, typeWord, ...detailsOf(event), ...by].join('  '));
}

/** The fields of the event's data that are one value; times and lists are for programs. */
function detailsOf({ data }: Event): readonly string[] {
  const oneof = EventSchema.oneofs.find(({ name }) => name === 'data');
  const field = oneof?.fields.find(({ localName }) => localName === data.case);
  if (field?.message === undefined || data.value === undefined) return [];
  const message = reflect(field.message, data.value);
  const details = message.fields.flatMap((each) => detailOf(message, each));
  return details.length === 0 ? [] : [details.join(' ')];
}

function detailOf(message: ReflectMessage, field: DescField): readonly string[] {
  if (!message.isSet(field)) return isPlainFlag(field) ? [`${field.name}=false`] : [];
  const value: unknown = message.get(field);
  switch (field.fieldKind) {
    case 'enum':
      return [`${field.name}=${enumWord(field.enum, Number(value)) ?? String(value)}`];
    case 'scalar': {
      const text = String(value);
      return [`${field.name}=${/[\s"]/.test(text) ? JSON.stringify(text) : text}`];
    }
    default:
      return [];
  }
}

/** A false value says so: "powered_on=false". */
function isPlainFlag(field: DescField): boolean {
  return field.fieldKind === 'scalar' && field.scalar === ScalarType.BOOL;
}
