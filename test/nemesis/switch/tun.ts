/** TUN devices of Linux, through koffi: network interfaces whose packets this process reads and writes. */
import koffi from 'koffi'

const O_RDWR_NONBLOCK = 0o2 | 0o4000
const TUNSETIFF = 0x400454ca
/** Packets of IP, without a header in front of them. */
const IFF_TUN_NO_PI = 0x1001
const POLLIN = 1
/** `struct ifreq`: 16 bytes of name, then the flags. */
const IFREQ_BYTES = 40
const POLLFD_BYTES = 8
export const MTU = 1500

const libc = koffi.load(null)
const open = libc.func('int open(const char *path, int flags)')
const ioctl = libc.func('int ioctl(int fd, unsigned long request, void *argument)')
const poll = libc.func('int poll(void *fds, unsigned long count, int timeout)')
const read = libc.func('long read(int fd, void *buffer, unsigned long count)')
const write = libc.func('long write(int fd, void *buffer, unsigned long count)')

export class TunDevices {
  readonly #descriptors: readonly number[]
  readonly #polled: Buffer
  readonly #buffer = Buffer.alloc(2 * MTU)

  /**
   * Creates a device for each name, in the network namespace of this process.
   * @throws Error if the kernel refuses
   */
  constructor(names: readonly string[]) {
    this.#descriptors = names.map(openTun)
    this.#polled = Buffer.alloc(POLLFD_BYTES * names.length)
    for (const [i, descriptor] of this.#descriptors.entries()) {
      this.#polled.writeInt32LE(descriptor, POLLFD_BYTES * i)
      this.#polled.writeInt16LE(POLLIN, POLLFD_BYTES * i + 4)
    }
  }

  /** Waits for packets, at most `ms`. @returns indices of the devices that have some */
  wait(ms: number): number[] {
    if (poll(this.#polled, this.#descriptors.length, ms) <= 0) return []
    return this.#descriptors.flatMap((_, i) => (this.#polled.readInt16LE(POLLFD_BYTES * i + 6) & POLLIN ? [i] : []))
  }

  /** The next packet of a device, or undefined if there is none. */
  read(device: number): Buffer | undefined {
    const length: number = read(this.#descriptors[device], this.#buffer, this.#buffer.length)
    return length > 0 ? Buffer.from(this.#buffer.subarray(0, length)) : undefined
  }

  /** Hands a packet to a device. It is lost if the device is down. */
  write(device: number, packet: Buffer): void {
    write(this.#descriptors[device], packet, packet.length)
  }
}

function openTun(name: string): number {
  const descriptor: number = open('/dev/net/tun', O_RDWR_NONBLOCK)
  if (descriptor < 0) throw new Error('/dev/net/tun cannot be opened')
  const request = Buffer.alloc(IFREQ_BYTES)
  request.write(name)
  request.writeUInt16LE(IFF_TUN_NO_PI, 16)
  if (ioctl(descriptor, TUNSETIFF, request) < 0) throw new Error(`the device ${name} cannot be created`)
  return descriptor
}
