/**
 * Waits until the demo that started it has ended, in any way, and then removes its remains. The
 * demo holds the other end of standard input: its end is the end of the demo.
 *
 *     main.ts FOLDER
 */
import { text } from 'node:stream/consumers';
import { removeFolder } from '../site/folder.ts';

const [folder = ''] = process.argv.slice(2);
// A terminal tells every process of its Ctrl-C; this one outlives the demo.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
await text(process.stdin);
await removeFolder(folder);
