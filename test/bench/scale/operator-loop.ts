/**
 * One operator who lists, watches and counts as fast as he is answered, as a process of its own:
 * operator-loop.ts TARGET CA-FILE TOKEN-FILE. Tells its parent how many answers it has had.
 */
import { readFileSync } from 'node:fs';
import { connect, operatorClients } from '@rackwright/rpc';

const [target = '', caFile = '', tokenFile = ''] = process.argv.slice(2);
const caPem = readFileSync(caFile, 'utf8');
const channel = connect({ target, caPem, serverName: 'localhost' });
const { hosts } = operatorClients(channel, readFileSync(tokenFile, 'utf8').trim());
const pageSize = 1_000;
let answers = 0;

async function lists(): Promise<never> {
  for (let pageToken = ''; ; ) {
    ({ nextPageToken: pageToken } = await hosts.listHosts({ pageSize, pageToken }));
    answers += 1;
  }
}

async function counts(): Promise<never> {
  for (;;) {
    await hosts.countHosts({ groupBy: 'rack' });
    answers += 1;
  }
}

/** From the beginning, again and again: what there is is what a watch costs. */
async function watches(): Promise<never> {
  for (;;) {
    for await (const _ of hosts.watchHosts({})) {
      answers += 1;
      if (answers % pageSize === 0) break;
    }
  }
}

process.on('message', () => process.send?.({ answers }));
process.on('disconnect', () => process.exit(0));
await Promise.all([lists(), counts(), watches()]);
