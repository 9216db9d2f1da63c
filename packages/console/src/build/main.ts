/** Builds the console into `dist`: `node packages/console/src/build/main.ts`. */
import { buildConsole, consoleFolder } from './build.ts';

await buildConsole();
process.stdout.write(`the console stands in ${consoleFolder}\n`);
