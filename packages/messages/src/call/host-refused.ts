import { type HostRefusalName, hostRefusalWord } from '../failures.ts';
import { type ApiFailure, failedPrecondition } from './api-error.ts';

/** A host refuses because of its state: HOST_REFUSED, with the reason in the metadata. */
export function hostRefused(refusal: HostRefusalName, message: string, name: string): ApiFailure {
  const metadata = { resource: name, refusal: hostRefusalWord(refusal) };
  return failedPrecondition('HOST_REFUSED', message, metadata);
}
