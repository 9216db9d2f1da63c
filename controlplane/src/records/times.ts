/** Times of records in milliseconds. */
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
/** Milliseconds of a stored time. */
export function msOf(time: Timestamp | undefined): number | undefined {
  return time === undefined ? undefined : timestampMs(time);
}
