/** Output for others: JSON without fields that may hold a secret of a person. Pure. */
import type { JsonValue } from '@bufbuild/protobuf';

/** Fields whose value is left out, at any depth, by their names in JSON. */
const secretFields: ReadonlySet<string> = new Set([
  'userData',
  'networkConfig',
  'metaData',
  'variables',
  'arguments',
  'source',
  'lastOutput',
  'detail',
  'content',
  'password',
  'secret',
  'token',
  'webhookUrl',
  'webhookUrls',
  'env',
]);

const leftOut = '(left out)';

/** The same without them; of URLs, without user, password, query and fragment. */
export function redacted(value: JsonValue): JsonValue {
  if (typeof value === 'string') return withoutUrlSecrets(value);
  if (Array.isArray(value)) return value.map(redacted);
  if (!(value instanceof Object)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      key,
      secretFields.has(key) && !isEmpty(each) ? leftOut : redacted(each),
    ]),
  );
}

function isEmpty(value: JsonValue): boolean {
  if (value === null || value === '') return true;
  return value instanceof Object && Object.keys(value).length === 0;
}

/** The checksum of an image, "#sha256=…", is no secret; all else after "?" or "#" may be one. */
function withoutUrlSecrets(text: string): string {
  return text.replaceAll(
    /\b([a-z][a-z0-9+.-]*:\/\/)([^\s/"'<>@]*@)?([^\s"'<>?#]*)([?#][^\s"'<>]*)?/gi,
    (_all, scheme: string, user = '', rest = '', query = '') => {
      const [, checksum = ''] = /(#sha256=[0-9a-f]{64})$/i.exec(String(query)) ?? [];
      const hadMore = String(user) !== '' || String(query) !== checksum;
      return `${scheme}${String(rest)}${hadMore ? leftOut : ''}${checksum}`;
    },
  );
}
