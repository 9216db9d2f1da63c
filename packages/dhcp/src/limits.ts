/** Largest datagram that we read or write, bytes; boot firmware stays below 1,500. */
export const packetBytesMax = 2_048;
