/** The section `traces` of both programs' configurations. */
import type { ConfigReader } from '@rackwright/platform';

export interface TracesConfig {
  /** The URL of the collector by OTLP: "http://collector.example:4318/v1/traces". */
  readonly url: string;
}

export function readTraces(reader: ConfigReader): TracesConfig {
  const form =
    'an http:// or https:// URL without a user, as collectors take OTLP: ' +
    '"http://collector.example:4318/v1/traces"';
  return { url: reader.textThat('url', isCollector, form) };
}

function isCollector(url: string): boolean {
  const parsed = URL.parse(url);
  const isWeb = parsed?.protocol === 'http:' || parsed?.protocol === 'https:';
  return isWeb && parsed.username === '' && parsed.password === '';
}
