/** What the boot path reports to the metrics. A call returns at once and never throws. */

import type { ServerNotice } from '@rackwright/dhcp';
import type { OperationId } from '@rackwright/messages';
import type { TransferEnd } from '@rackwright/tftp';
import type { BootUrlTarget } from './urls.ts';

export interface BootMeter {
  /** A request of a client was decided on; `by`: which half of the DHCP service. */
  dhcpAsked(by: 'proxy' | 'server', isAnswered: boolean): void;
  /** A datagram that is no packet of its protocol, or a socket in trouble. */
  dhcpTrouble(): void;
  dhcpFault(kind: ServerNotice['kind']): void;
  /** Whether the server keeps silent for another one, now. */
  dhcpQuiet(subnet: object, isQuiet: boolean): void;
  tftpRefused(): void;
  /** `bytes`: of the file, where all of it was sent. */
  tftpEnded(end: TransferEnd['kind'], bytes: number): void;
  /** `bytes`: of the answer's body. */
  httpAnswered(kind: BootUrlTarget['kind'], status: number, bytes: number): void;
  /** A boot script that starts the runner was given out for this operation. */
  runnerServed(operationId: OperationId): void;
}
