/**
 * grpc-js writes its own lines to standard error, past the program's log. Its important errors
 * reach us as errors, too; imported for this effect by everything that opens a socket.
 */
import { logVerbosity, setLogVerbosity } from '@grpc/grpc-js';

setLogVerbosity(logVerbosity.NONE);
