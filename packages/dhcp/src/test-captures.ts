/**
 * Packets of real firmware as they stood on the wire, one comment per field. Taken with tcpdump
 * from QEMU machines that booted through our own proxy; U-Boot hears none, and had its address from
 * dnsmasq.
 */

/** Bytes from hex, a comment after `#`; `00*64` is 64 zero bytes. */
function capture(text: string): Uint8Array {
  const words = text.split('\n').flatMap((line) => line.replace(/#.*/, '').trim().split(/\s+/));
  return Uint8Array.from(
    words
      .filter((word) => word !== '')
      .flatMap((word) => {
        const [byte = '', count = '1'] = word.split('*');
        return Array.from({ length: Number(count) }, () => Number.parseInt(byte, 16));
      }),
  );
}

export const captures = {
  /** Debian's iPXE 1.0.0 as the ROM of a BIOS machine: DISCOVER. */
  ipxeRomDiscover: capture(`
  01                        # op: request
  01                        # hardware type: Ethernet
  06                        # hardware address length
  00                        # hops
  ce c4 83 32               # transaction id
  00 04                     # seconds
  00 00                     # flags
  00 00 00 00               # client address
  00 00 00 00               # your address
  00 00 00 00               # next server address
  00 00 00 00               # relay address
  52 54 00 78 00 01         # hardware address
  00*10                     # its padding
  00*64                     # server name: empty
  00*128                    # boot file: empty
  63 82 53 63               # magic cookie
  35 01                     # option 53, 1 byte: message type
  01
  39 02                     # option 57, 2 bytes: message bytes max
  05 c0
  5d 02                     # option 93, 2 bytes: architecture: 0
  00 00
  5e 03                     # option 94, 3 bytes: network interface
  01 02 01
  3c 20                     # option 60, 32 bytes: vendor class: PXEClient:Arch:00000:UNDI:002001
  50 58 45 43 6c 69 65 6e 74 3a 41 72 63 68 3a 30
  30 30 30 30 3a 55 4e 44 49 3a 30 30 32 30 30 31
  4d 04                     # option 77, 4 bytes: user class: iPXE
  69 50 58 45
  37 17                     # option 55, 23 bytes: parameter list
  01 03 06 07 0c 0f 11 1a 2b 3c 42 43 77 80 81 82
  83 84 85 86 87 af cb
  af 30                     # option 175, 48 bytes: iPXE
  b1 05 01 1a f4 10 00 eb 03 01 00 00 17 01 01 22
  01 01 13 01 01 11 01 01 27 01 01 19 01 01 29 01
  01 10 01 02 21 01 01 15 01 01 18 01 01 12 01 01
  3d 07                     # option 61, 7 bytes: client identifier
  01 52 54 00 78 00 01
  61 11                     # option 97, 17 bytes: machine identifier
  00*17
  ff                        # end
`),

  /** EDK2 (OVMF 2022.11) booting by PXE: DISCOVER. */
  edk2PxeDiscover: capture(`
  01                        # op: request
  01                        # hardware type: Ethernet
  06                        # hardware address length
  00                        # hops
  a9 7c 97 e3               # transaction id
  00 00                     # seconds
  80 00                     # flags: broadcast
  00 00 00 00               # client address
  00 00 00 00               # your address
  00 00 00 00               # next server address
  00 00 00 00               # relay address
  52 54 00 78 00 01         # hardware address
  00*10                     # its padding
  00*64                     # server name: empty
  00*128                    # boot file: empty
  63 82 53 63               # magic cookie
  35 01                     # option 53, 1 byte: message type
  01
  39 02                     # option 57, 2 bytes: message bytes max
  05 c0
  37 23                     # option 55, 35 bytes: parameter list
  01 02 03 04 05 06 0c 0d 0f 11 12 16 17 1c 28 29
  2a 2b 32 33 36 3a 3b 3c 42 43 61 80 81 82 83 84
  85 86 87
  61 11                     # option 97, 17 bytes: machine identifier
  00*17
  5e 03                     # option 94, 3 bytes: network interface
  01 03 00
  5d 02                     # option 93, 2 bytes: architecture: 7
  00 07
  3c 20                     # option 60, 32 bytes: vendor class: PXEClient:Arch:00007:UNDI:003000
  50 58 45 43 6c 69 65 6e 74 3a 41 72 63 68 3a 30
  30 30 30 37 3a 55 4e 44 49 3a 30 30 33 30 30 30
  ff                        # end
`),

  /** EDK2 after it chose our entry of the PXE menu: REQUEST to port 4011. */
  edk2PxeRequest: capture(`
  01                        # op: request
  01                        # hardware type: Ethernet
  06                        # hardware address length
  00                        # hops
  97 5c 1d 97               # transaction id
  00 00                     # seconds
  00 00                     # flags
  0a 4e 00 87               # client address
  00 00 00 00               # your address
  00 00 00 00               # next server address
  00 00 00 00               # relay address
  52 54 00 78 00 01         # hardware address
  00*10                     # its padding
  00*64                     # server name: empty
  00*128                    # boot file: empty
  63 82 53 63               # magic cookie
  2b 07                     # option 43, 7 bytes: PXE
  47 04 80 00 00 00 ff
  35 01                     # option 53, 1 byte: message type
  03
  37 23                     # option 55, 35 bytes: parameter list
  01 02 03 04 05 06 0c 0d 0f 11 12 16 17 1c 28 29
  2a 2b 32 33 36 3a 3b 3c 42 43 61 80 81 82 83 84
  85 86 87
  39 02                     # option 57, 2 bytes: message bytes max
  05 c0
  3c 20                     # option 60, 32 bytes: vendor class: PXEClient:Arch:00007:UNDI:003000
  50 58 45 43 6c 69 65 6e 74 3a 41 72 63 68 3a 30
  30 30 30 37 3a 55 4e 44 49 3a 30 30 33 30 30 30
  5d 02                     # option 93, 2 bytes: architecture: 7
  00 07
  5e 03                     # option 94, 3 bytes: network interface
  01 03 00
  61 11                     # option 97, 17 bytes: machine identifier
  00*17
  ff                        # end
`),

  /** EDK2 booting by HTTP: DISCOVER. */
  edk2HttpDiscover: capture(`
  01                        # op: request
  01                        # hardware type: Ethernet
  06                        # hardware address length
  00                        # hops
  50 87 55 41               # transaction id
  00 00                     # seconds
  80 00                     # flags: broadcast
  00 00 00 00               # client address
  00 00 00 00               # your address
  00 00 00 00               # next server address
  00 00 00 00               # relay address
  52 54 00 78 00 01         # hardware address
  00*10                     # its padding
  00*64                     # server name: empty
  00*128                    # boot file: empty
  63 82 53 63               # magic cookie
  35 01                     # option 53, 1 byte: message type
  01
  39 02                     # option 57, 2 bytes: message bytes max
  05 c0
  37 1b                     # option 55, 27 bytes: parameter list
  01 02 03 04 05 06 0c 0d 0f 11 12 16 17 1c 28 29
  2a 2b 32 33 36 3a 3b 3c eb 43 61
  61 11                     # option 97, 17 bytes: machine identifier
  00*17
  5e 03                     # option 94, 3 bytes: network interface
  01 03 00
  5d 02                     # option 93, 2 bytes: architecture: 16
  00 10
  3c 21                     # option 60, 33 bytes: vendor class: HTTPClient:Arch:00016:UNDI:003000
  48 54 54 50 43 6c 69 65 6e 74 3a 41 72 63 68 3a
  30 30 30 31 36 3a 55 4e 44 49 3a 30 30 33 30 30
  30
  ff                        # end
`),

  /** snponly.efi, started by EDK2 through HTTP: DISCOVER. */
  chainedIpxeDiscover: capture(`
  01                        # op: request
  01                        # hardware type: Ethernet
  06                        # hardware address length
  00                        # hops
  58 a6 dc 36               # transaction id
  00 04                     # seconds
  00 00                     # flags
  00 00 00 00               # client address
  00 00 00 00               # your address
  00 00 00 00               # next server address
  00 00 00 00               # relay address
  52 54 00 78 00 01         # hardware address
  00*10                     # its padding
  00*64                     # server name: empty
  00*128                    # boot file: empty
  63 82 53 63               # magic cookie
  35 01                     # option 53, 1 byte: message type
  01
  39 02                     # option 57, 2 bytes: message bytes max
  05 c0
  5d 02                     # option 93, 2 bytes: architecture: 7
  00 07
  5e 03                     # option 94, 3 bytes: network interface
  01 03 0a
  3c 20                     # option 60, 32 bytes: vendor class: PXEClient:Arch:00007:UNDI:003010
  50 58 45 43 6c 69 65 6e 74 3a 41 72 63 68 3a 30
  30 30 30 37 3a 55 4e 44 49 3a 30 30 33 30 31 30
  4d 04                     # option 77, 4 bytes: user class: iPXE
  69 50 58 45
  37 17                     # option 55, 23 bytes: parameter list
  01 03 06 07 0c 0f 11 1a 2b 3c 42 43 77 80 81 82
  83 84 85 86 87 af cb
  af 24                     # option 175, 36 bytes: iPXE
  b1 05 01 1a f4 10 00 eb 03 01 00 00 17 01 01 24
  01 01 13 01 01 11 01 01 27 01 01 29 01 01 15 01
  01 12 01 01
  3d 07                     # option 61, 7 bytes: client identifier
  01 52 54 00 78 00 01
  61 11                     # option 97, 17 bytes: machine identifier
  00*17
  ff                        # end
`),

  /** Debian's U-Boot 2023.01 on QEMU's board for arm64, asking for its script: DISCOVER. */
  uBootDiscover: capture(`
  01                        # op: request
  01                        # hardware type: Ethernet
  06                        # hardware address length
  00                        # hops
  52 52 5e de               # transaction id
  00 00                     # seconds
  00 00                     # flags
  00 00 00 00               # client address
  00 00 00 00               # your address
  00 00 00 00               # next server address
  00 00 00 00               # relay address
  52 52 52 52 52 52         # hardware address: that of its built-in environment
  00*10                     # its padding
  00*64                     # server name: empty
  62 6f 6f 74 2e 73 63 72   # boot file: boot.scr.uimg
  2e 75 69 6d 67
  00*115
  63 82 53 63               # magic cookie
  35 01                     # option 53, 1 byte: message type
  01
  39 02                     # option 57, 2 bytes: message bytes max
  02 40
  5d 02                     # option 93, 2 bytes: architecture: 22
  00 16
  5e 03                     # option 94, 3 bytes: network interface
  01 00 00
  3c 0c                     # option 60, 12 bytes: vendor class: U-Boot.armv8
  55 2d 42 6f 6f 74 2e 61 72 6d 76 38
  37 05                     # option 55, 5 bytes: parameter list
  01 03 06 0c 11
  ff                        # end
  00*22                     # padding
`),
};
