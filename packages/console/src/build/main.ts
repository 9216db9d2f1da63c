/** Builds the console into `dist`: `node packages/console/src/build/main.ts`. */
import { buildConsoleInto, consoleFolder } from './build.ts';

await buildConsoleInto(consoleFolder);
process.stdout.write(`the console stands in ${consoleFolder}\n`);
