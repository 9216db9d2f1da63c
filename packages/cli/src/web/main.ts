/** The web client of the real machine. */
import { nodeWebClient } from '@rackwright/platform/node';

export const web = nodeWebClient();
