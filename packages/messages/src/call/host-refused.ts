import { type HostRefusalName, hostRefusalWord } from '../failures.ts';
import { type ApiFailure, failedPrecondition } from './api-error.ts';

/** A host refuses by what it is or does now: HOST_REFUSED, and in the metadata why. */
export function hostRefused(refusal: HostRefusalName, message: string, name: string): ApiFailure {
  const metadata = { resource: name, refusal: hostRefusalWord(refusal) };
  return failedPrecondition('HOST_REFUSED', message, metadata);
}
