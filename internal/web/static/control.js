// What a person says of an alarm: acknowledge, shelve, unshelve, and whether it was
// false, also when it is over. A button carries the machine and the alarm that it was
// drawn with, and so does its dialog. A command is sent with the token in a header; what
// became of it comes as an alert.

const $ = (id) => document.getElementById(id);
const titles = { acknowledge: "Acknowledge the alarm", shelve: "Shelve the alarm", unshelve: "End the shelf", mark_false: "Nothing was wrong with the tool", unmark_false: "It was no false alarm" };
const answerWait = 10000;

// Storage may be forbidden; then a person types more.
const remember = (store, key, value) => { try { store().setItem(key, value); } catch { /* as said */ } };
const recall = (store, key) => { try { return store().getItem(key) ?? ""; } catch { return ""; } };
const session = () => sessionStorage, local = () => localStorage;

// draw makes a button say what it is for.
function draw(button, machine, incident, hidden) {
  button.hidden = hidden;
  Object.assign(button.dataset, { machine: machine ?? "", incident });
}

export class Control {
  #button; #order; #sent; #late; // #button may be drawn for another alarm meanwhile, #order stays
  #answers = new Map(); // alerts by command: one may come before its command's receipt

  constructor() {
    for (const b of document.querySelectorAll(".orders button, #view-mark button")) b.addEventListener("click", () => this.#ask(b));
    $("cancel").addEventListener("click", () => $("ask").close());
    $("ask").addEventListener("close", () => { if (!$("ask").open) this.#order = this.#sent = undefined; }); // it comes late: the next may be asked already
    $("order").addEventListener("submit", (e) => { e.preventDefault(); this.#send(new FormData(e.target)); });
  }

  // show offers what can be said of an alarm in this state.
  show(offered, machine, word, incident) {
    const may = {
      acknowledge: (word === "raised" || word === "returned") && incident,
      shelve: ["normal", "raised", "acknowledged", "returned"].includes(word),
      unshelve: word === "shelved",
    };
    for (const b of document.querySelectorAll(".orders button")) draw(b, machine, incident, !may[b.value]);
    for (const p of document.querySelectorAll(".orders")) p.hidden = !offered || !machine || !Object.values(may).some(Boolean);
  }

  // past offers to say whether an alarm of a machine, which may be over, was false.
  past(offered, machine, incident, wrong) {
    $("view-mark").hidden = !offered || !machine;
    for (const b of $("view-mark").children) draw(b, machine, incident, (b.value === "mark_false") === wrong);
  }

  close() { $("ask").close(); }

  // hear takes new alerts, among which the answer may be.
  hear(alerts) {
    for (const a of alerts) if (a.command) this.#answers.set(a.command, a);
    for (const id of [...this.#answers.keys()].slice(0, -50)) this.#answers.delete(id);
    const answer = this.#answers.get(this.#sent);
    if (!answer) return;
    if (answer.state !== "refused") return $("ask").close();
    this.#says(answer.text);
  }

  #ask(button) {
    const { value: action, dataset: { machine, incident } } = button;
    this.#button = button;
    this.#sent = undefined;
    this.#order = { action, machine, incident };
    $("ask-title").textContent = titles[action];
    $("ask-machine").textContent = machine.slice(machine.lastIndexOf("/") + 1);
    $("ask-path").textContent = machine.slice(0, machine.lastIndexOf("/") + 1).replaceAll("/", " / ");
    $("ask-alarm").textContent = incident || "none is open";
    const { by, note, minutes, token } = $("order").elements;
    minutes.disabled = minutes.parentElement.hidden = action !== "shelve";
    note.required = action === "shelve";
    $("note-word").textContent = action === "shelve" ? "Reason" : "Note";
    note.value = "";
    by.value = recall(local, "by");
    token.value = recall(session, "token");
    this.#says("");
    $("ask").showModal();
    (by.value ? note : by).focus();
  }

  async #send(form) {
    const order = this.#order;
    const [by, note, token] = ["by", "note", "token"].map((k) => form.get(k).trim());
    if (!order.incident && this.#button.dataset.incident) return this.#says("An alarm was raised meanwhile. Close this and look at it first.");
    if (!/^[!-~]+$/.test(token)) return this.#says("this is not the token");
    this.#says("", true);
    let answer, text;
    try {
      answer = await fetch("/api/commands", {
        method: "POST",
        headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
        body: JSON.stringify({ ...order, by, note, minutes: Number(form.get("minutes") ?? 0) }),
      });
      text = await answer.text();
    } catch {
      text = "The program cannot be reached.";
    }
    if (this.#order !== order) return; // closed meanwhile
    remember(local, "by", by);
    remember(session, "token", answer?.status === 401 ? "" : token);
    if (!answer?.ok) return this.#says(text);
    this.#sent = JSON.parse(text).id;
    if (this.#answers.has(this.#sent)) return this.hear([]);
    this.#late = setTimeout(() => this.#says("Sent. The monitor has not answered yet; it will carry the command out when it can."), answerWait);
  }

  #says(text, busy = false) {
    clearTimeout(this.#late);
    $("ask-says").textContent = text;
    $("go").disabled = busy;
  }
}
