/** Restore the events of a model's stream: every text in a channel of its own, arguments of tools whole. */

/** One event of a provider, as JSON. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the providers' packages have the types
export type Event = { [member: string]: any };

/** What is to be done for an event; `event` forms an event of a restored text. */
export type Step =
  | { do: "feed"; channel: string; text: string; event: (text: string) => Event }
  | { do: "collect"; channel: string; text: string; tool: string; event: (text: string) => Event }
  | { do: "close"; channel: string }
  | { do: "pass"; event: () => Event };

/** One family of events: what of an event is text of which channel. */
export interface EventShapes {
  /** Texts of closed channels as they came, and as they were restored: for events that repeat them. */
  readonly restored: Map<string, string>;
  steps(event: Event): Step[];
}

type TextStream = (chunks: AsyncIterable<string>) => AsyncGenerator<string, void, undefined>;
type Whole = (tool: string, args: string) => Promise<string>;

const WAITING = 256;

/** Yield `events` with their texts restored; leaving early ends the source and all channels. */
export async function* restoredEvents(
  events: AsyncIterable<Event> | Iterable<Event>,
  shapes: EventShapes,
  stream: TextStream,
  whole: Whole,
): AsyncGenerator<Event, void, undefined> {
  const restoration = new Restoration(shapes, stream, whole);
  const source = iterated(events);
  void restoration.drive(source);
  try {
    for (;;) {
      const item = await restoration.out.take();
      if ("fault" in item) throw item.fault;
      if (!("event" in item)) return;
      yield item.event;
    }
  } finally {
    restoration.stop();
    // The source may be waiting for its next event, so nobody waits for its end.
    source.return(undefined).catch(() => undefined);
  }
}

async function* iterated(events: AsyncIterable<Event> | Iterable<Event>): AsyncGenerator<Event, void, undefined> {
  yield* events;
}

type Item = { event: Event } | { fault: unknown } | { end: true };

/** A queue with room for `size` items; once it is closed, nothing waits for room. */
class Queue<T> {
  readonly #items: T[] = [];
  readonly #takers: ((item: T) => void)[] = [];
  readonly #putters: (() => void)[] = [];
  #closed = false;

  constructor(readonly size = Infinity) {}

  async put(item: T): Promise<void> {
    const taker = this.#takers.shift();
    if (taker !== undefined) return taker(item);
    this.#items.push(item);
    while (this.#items.length > this.size && !this.#closed) {
      await new Promise<void>((resolve) => this.#putters.push(resolve));
    }
  }

  async take(): Promise<T> {
    const item = this.#items.shift();
    this.#putters.shift()?.();
    return item !== undefined ? item : new Promise<T>((resolve) => this.#takers.push(resolve));
  }

  close(): void {
    this.#closed = true;
    for (const putter of this.#putters.splice(0)) putter();
  }
}

class Restoration {
  readonly out = new Queue<Item>(WAITING);
  readonly #open = new Map<string, Channel | Arguments>();
  readonly #failed: Promise<never>;
  #fail: (fault: unknown) => void = () => undefined;
  #stopped = false;

  constructor(
    readonly shapes: EventShapes,
    readonly stream: TextStream,
    readonly whole: Whole,
  ) {
    this.#failed = new Promise<never>((_, reject) => (this.#fail = reject));
    this.#failed.catch(() => undefined);
  }

  /** Read the source to its end; what fails, a channel too, ends the answer. */
  async drive(source: AsyncGenerator<Event, void, undefined>): Promise<void> {
    let end: Item = { end: true };
    try {
      for (;;) {
        const next = await Promise.race([source.next(), this.#failed]);
        if (next.done || this.#stopped) break;
        for (const step of this.shapes.steps(next.value)) await this.#take(step);
      }
      for (const channel of [...this.#open.keys()]) await this.#close(channel);
    } catch (fault) {
      end = { fault };
    }
    await this.out.put(end);
  }

  /** End all channels: nobody reads on. */
  stop(): void {
    this.#stopped = true;
    this.out.close();
    for (const channel of this.#open.values()) if (channel instanceof Channel) channel.end();
  }

  async #take(step: Step): Promise<void> {
    if (step.do === "pass") return this.out.put({ event: step.event() });
    if (step.do === "close") return this.#close(step.channel);
    let channel = this.#open.get(step.channel);
    if (channel === undefined) {
      channel = step.do === "feed" ? new Channel(this.stream, this.out, this.#fail) : new Arguments(step.tool);
      this.#open.set(step.channel, channel);
    }
    channel.add(step.text, step.event);
  }

  async #close(key: string): Promise<void> {
    const channel = this.#open.get(key);
    if (channel === undefined) return;
    let restored: string;
    if (channel instanceof Channel) {
      restored = await Promise.race([channel.closed(), this.#failed]);
    } else {
      restored = channel.text === "" ? "" : await this.whole(channel.tool, channel.text);
      if (restored !== "" && channel.event !== undefined) await this.out.put({ event: channel.event(restored) });
    }
    this.#open.delete(key);
    if (restored !== channel.text) this.shapes.restored.set(channel.text, restored);
  }
}

/** The arguments of a tool, which are restored whole. */
class Arguments {
  text = "";
  event: ((text: string) => Event) | undefined;

  constructor(readonly tool: string) {}

  add(text: string, event: (text: string) => Event): void {
    this.text += text;
    this.event = event;
  }
}

/** One text: pieces go to the service as they come, restored ones become events. */
class Channel {
  text = "";
  #restored = "";
  #event: ((text: string) => Event) | undefined;
  readonly #pieces = new Queue<string | null>();
  readonly #pumped: Promise<void>;

  constructor(stream: TextStream, out: Queue<Item>, fail: (fault: unknown) => void) {
    this.#pumped = this.#pump(stream, out);
    this.#pumped.catch(fail);
  }

  add(text: string, event: (text: string) => Event): void {
    this.text += text;
    this.#event = event;
    void this.#pieces.put(text);
  }

  end(): void {
    void this.#pieces.put(null);
  }

  /** Wait until everything is restored, and return it. */
  async closed(): Promise<string> {
    this.end();
    await this.#pumped;
    return this.#restored;
  }

  async #pump(stream: TextStream, out: Queue<Item>): Promise<void> {
    for await (const piece of stream(this.#fed())) {
      this.#restored += piece;
      if (piece !== "" && this.#event !== undefined) await out.put({ event: this.#event(piece) });
    }
  }

  async *#fed(): AsyncGenerator<string, void, undefined> {
    for (let piece = await this.#pieces.take(); piece !== null; piece = await this.#pieces.take()) yield piece;
  }
}
