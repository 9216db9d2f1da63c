/** What systemd does with a service that cannot start: no start follows the other for ever. */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { type ConfigProblem, problemText } from '@rackwright/platform';
import { until } from '../lab/processes.ts';
import type { Site } from '../lab/site.ts';
import type { Container } from './container.ts';
import { property, START_WAIT_MS, STATE, untilActive } from './services.ts';

const SERVICE = 'rackwright-controlplane';
const COUNT = '/run/rackwright/failed-starts';

interface Wrong {
  /** The line that is added to the file. */
  readonly added: string;
  readonly told: ConfigProblem;
}

const UNKNOWN: Wrong = {
  added: 'lgo: {level: info}',
  told: { key: 'lgo', text: 'is no key of this configuration; did you mean log?' },
};

/** Wrong for itself, and wrong beside the rest; what is told of it. */
const WRONG: Readonly<Record<string, readonly Wrong[]>> = {
  agent: [
    UNKNOWN,
    {
      added: 'http: {port: 7443}',
      told: { key: 'http.port', text: 'has to be another than runner.port' },
    },
  ],
  controlplane: [
    UNKNOWN,
    {
      added: 'operators: {port: 7441}',
      told: { key: 'operators.port', text: 'has to be another than agents.port' },
    },
  ],
};

/** What is wrong in a configuration is told with its line, and only a person starts it again. */
export async function checkConfigurations({ findings }: Site, container: Container): Promise<void> {
  const tried = Object.entries(WRONG).flatMap(([name, all]) =>
    all.map((one) => ({ name, ...one })),
  );
  for (const { name, added, told } of tried) {
    const service = `rackwright-${name}`;
    const file = `/etc/rackwright/${name}.yaml`;
    const path = container.path(file);
    const text = readFileSync(path, 'utf8');
    const line = text.split('\n').length;
    writeFileSync(path, `${text}${added}\n`);
    const { code, err } = await container.attempt([service, '--check-config']);
    const message = `${file}:${line}: ${problemText(told)}\n`;
    const isTold = code === 2 && err === message;
    findings.check(`${name}: a wrong ${told.key} is told`, isTold, `${code} ${err}`);
    const { code: started } = await container.attempt(['systemctl', 'restart', service]);
    findings.check(`${name}: it does not start with it`, started !== 0);
    const state = await property(container, service, 'ActiveState');
    findings.check(`${name}: it is left alone until somebody has mended it`, state === 'failed');
    const journal = await container.run(['journalctl', '--no-pager', '--unit', service]);
    findings.check(`${name}: the journal has the line`, journal.includes(message.trim()));
    writeFileSync(path, text);
    await container.run(['systemctl', 'restart', service]);
  }
}

/** Any other reason may pass by itself: it is tried again, later each time. */
export async function checkPauses({ findings }: Site, container: Container): Promise<void> {
  const count = container.path(COUNT);
  const identity = `${STATE}/identity`;
  await container.run(['chmod', '0755', identity]);
  await container.attempt(['systemctl', 'restart', SERVICE]);
  // The third waits before it begins; those before it did not.
  await until('two starts that fail', START_WAIT_MS, () => {
    return existsSync(count) && statSync(count).size >= 3;
  });
  const state = await property(container, SERVICE, 'ActiveState');
  findings.check('a start that fails is tried again', state === 'activating', state);
  await container.run(['chmod', '0700', identity]);
  await container.run(['systemctl', 'restart', SERVICE]);
  await untilActive(container, SERVICE);
  findings.check('a start that succeeds ends the count', !existsSync(count));
}
