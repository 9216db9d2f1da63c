/** What systemd does with a service that cannot start: no start follows the other for ever. */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { until } from '../lab/processes.ts';
import type { Site } from '../lab/site.ts';
import type { Container } from './container.ts';
import { property, START_WAIT_MS, STATE, untilActive } from './services.ts';

const SERVICE = 'rackwright-controlplane';
const COUNT = '/run/rackwright/failed-starts';

/** What is wrong in a configuration is told with its line, and only a person starts it again. */
export async function checkConfigurations({ findings }: Site, container: Container): Promise<void> {
  for (const name of ['agent', 'controlplane']) {
    const service = `rackwright-${name}`;
    const file = `/etc/rackwright/${name}.yaml`;
    const path = container.path(file);
    const text = readFileSync(path, 'utf8');
    const line = text.split('\n').length;
    writeFileSync(path, `${text}lgo: {level: info}\n`);
    const { code, err } = await container.attempt([service, '--check-config']);
    const words = `${file}:${line}: lgo is no key of this configuration; did you mean log?\n`;
    findings.check(`${name}: a wrong key is told`, code === 2 && err === words, `${code} ${err}`);
    const { code: started } = await container.attempt(['systemctl', 'restart', service]);
    findings.check(`${name}: it does not start with it`, started !== 0);
    const state = await property(container, service, 'ActiveState');
    findings.check(`${name}: it is left alone until somebody has mended it`, state === 'failed');
    const journal = await container.run(['journalctl', '--no-pager', '--unit', service]);
    findings.check(`${name}: the journal has the line`, journal.includes(words.trim()));
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
  // The second failure waits before it ends; the first did not.
  await until('a second start that fails', START_WAIT_MS, () => {
    return existsSync(count) && statSync(count).size >= 2;
  });
  const state = await property(container, SERVICE, 'ActiveState');
  findings.check('a start that fails is tried again', state === 'activating', state);
  await container.run(['chmod', '0700', identity]);
  await container.run(['systemctl', 'restart', SERVICE]);
  await untilActive(container, SERVICE);
  findings.check('a start that succeeds ends the count', !existsSync(count));
}
