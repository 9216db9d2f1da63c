/** The section `traces` of both programs' configurations. */
import { ConfigError, type ConfigReader } from '@rackwright/platform';

export interface TracesConfig {
  /** The URL of the collector by OTLP: "http://collector.example:4318/v1/traces". */
  readonly url: string;
}

/** Throws `ConfigError`. */
export function readTraces(reader: ConfigReader): TracesConfig {
  const url = reader.text('url');
  const parsed = URL.parse(url);
  const isWeb = parsed?.protocol === 'http:' || parsed?.protocol === 'https:';
  if (isWeb && parsed.username === '' && parsed.password === '') return { url };
  throw new ConfigError(
    'traces.url has to be an http:// or https:// URL without a user, as collectors take OTLP: ' +
      '"http://collector.example:4318/v1/traces"',
  );
}
