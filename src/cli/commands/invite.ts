/** `admb invite`: signs invitations to networks with an allow-list. */
import { writeFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { fileProblem } from '../../base/errors.js'
import type { IdentityKey } from '../../network/index.js'
import { UsageError } from '../errors.js'
import { add } from '../options/command.js'
import type { Flags } from '../options/table.js'
import { print, printJson } from '../output/output.js'
import { readKey } from '../peer/files.js'

const WEEK_MS = 7 * 86_400_000

interface Signer {
  readonly key: IdentityKey
  /** Content of the file of the network key. */
  readonly networkKey: Uint8Array | undefined
  readonly networkId: string | undefined
}

export function inviteCommand(program: Command): Command {
  return add(
    program,
    'invite',
    {
      help: `Examples:
  admb keygen identity --dir inviter >> allowed.txt
  admb peer --data digits --allow allowed.txt,invited --join-page
  admb invite --dir inviter --url http://192.0.2.7:7280
  admb invite --dir inviter --expires 30d --out guests.txt
  admb peer --data digits --invitation guests.txt --peer /ip4/192.0.2.7/tcp/4280`
    },
    invite
  )
}

async function invite(flags: Flags<'invite'>): Promise<void> {
  const signer = await readSigner(flags)
  const { encodeToken, signInvitation } = await import('../../network/index.js')
  const terms = {
    network: signer.networkId ?? '',
    expires: Math.ceil(Date.now() + (flags.expires ?? WEEK_MS))
  }
  const token = await signInvitation(signer.key, terms)
  const text = encodeToken(token)
  const { id, issuer } = token.invitation
  const expires = new Date(terms.expires).toISOString()
  const link = flags.url === undefined ? undefined : linkOf(flags.url, text, signer.networkKey)
  if (flags.out !== undefined) await writeToken(flags.out, text)
  if (flags.json) return printJson({ command: 'invite', id, issuer, expires, invitation: text, link })
  print(`id       ${id}`)
  print(`issuer   ${issuer}`)
  print(`expires  ${expires}`)
  print('')
  print(link ?? text)
}

/** The link to the join page. Browsers do not send the part after # to servers. @throws UsageError */
function linkOf(url: string, text: string, networkKey: Uint8Array | undefined): string {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new UsageError(`${url} is not the address of a page: write it like https://host.example:7280`)
  const key = networkKey && new TextDecoder().decode(networkKey).split('\n')[2]
  const fragment = [...(key === undefined ? [] : [`key=${key}`]), `invitation=${text}`].join('&')
  return `${new URL('/join', url)}#${fragment}`
}

/** @throws UsageError */
async function writeToken(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, `${text}\n`, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    throw new UsageError(`cannot write ${file} (${fileProblem(error)}): give another --out`)
  }
}

/** @throws UsageError, DamagedKeyError; errors of the store */
async function readSigner({ dir, networkKey: file, networkId: given }: Flags<'invite'>): Promise<Signer> {
  const [{ Store }, { decodeIdentityKey, networkIdIn, parseNetworkId }] = await Promise.all([
    import('../../storage/index.js'),
    import('../../network/index.js')
  ])
  const networkKey = file === undefined ? undefined : await readKey(file)
  const store = await Store.openExisting(dir)
  try {
    if (store.identity === undefined)
      throw new UsageError(`${dir} holds no identity: make one with admb keygen identity`)
    const id = given === undefined ? networkKey && networkIdIn(networkKey) : parseNetworkId(given)
    return { key: decodeIdentityKey(store.identity), networkKey, networkId: await store.networkFor(id) }
  } finally {
    await store.close()
  }
}
