### Words of the hosted pages. Short sentences, no idioms, nothing that only an engineer understands.
### Every key stands in every file of this folder; a test compares them.

## The frame
payment-to = Payment to
test-mode = Test mode
test-mode-body = No real money moves.
language-switch = Language
busy = One moment …
offline = You are offline. This page looks again when the connection is back.
details = Details
detail-reference = Reference
detail-payer = Your details
detail-total = Total
moment = { $day }, { $time } (Banjul time)
month-1 = January
month-2 = February
month-3 = March
month-4 = April
month-5 = May
month-6 = June
month-7 = July
month-8 = August
month-9 = September
month-10 = October
month-11 = November
month-12 = December
left-hours = { $count ->
    [one] You have about { $count } hour to pay.
   *[other] You have about { $count } hours to pay.
}
left-minutes = { $count ->
    [one] You have about { $count } minute to pay.
   *[other] You have about { $count } minutes to pay.
}
left-seconds = You have less than a minute to pay.
error-title = Please check this
title-error = Error: { $title }
title-pay = Pay
title-phone = Your number
title-checking = Checking

## Methods
wave = Wave
afrimoney = Afrimoney
qmoney = QMoney
card = card
card-bank = the bank
pay-with-wave = Pay with Wave
pay-with-afrimoney = Pay with Afrimoney
pay-with-qmoney = Pay with QMoney
pay-with-card = Pay by card
will-wave = opens the Wave app
will-afrimoney = you approve it on your phone
will-qmoney = you get a code by SMS
will-card = opens the card page

## Choose
choose-title = How do you want to pay?
choose-one-title = Check and pay
choose-none-title = No online payment
choose-none-body = This payment is not made online. Ask { $merchant } how to pay.
choose-none-invoice = This invoice is not paid online. Ask { $merchant } how to pay.
choose-promise = Nothing is taken before you approve it.
leave-shop = Cancel and return to the shop
leave-here = Cancel this payment
problem-not-started = { $method } could not start the payment. Nothing was taken. { $another ->
    [no] Try again.
   *[yes] Try again, or pay another way.
}
problem-card-not-started = The card page could not be opened. Nothing was taken. { $another ->
    [no] Try again.
   *[yes] Try again, or pay another way.
}
problem-in-progress = A payment is still being checked. Wait for its answer before you pay again.
problem-too-often = That was too often in a short time. Wait ten minutes, then try again.
problem-stale-form = This page was too old. Nothing was sent. Please try again.
problem-amount-changed = The amount to pay has changed. Nothing was sent. Check the new amount, then try again.
problem-no-new-payment = This link takes no new payments any more. Nothing was sent. You can still finish the payment that you began.
problem-last-place-held = Somebody else is paying the last place now. Nothing was sent. Try again in some minutes.

## Phone
phone-title-afrimoney = Your Afrimoney number
phone-title-qmoney = Your QMoney number
phone-title-wave = Your Wave number
phone-why-push = We send the payment request to this phone.
phone-why-code = We send a code by SMS to this phone.
phone-why-wave = The payment is approved with this number.
phone-known = Continue with { $phone }
phone-another = Use another number
phone-label = Phone number
phone-hint = +220 and 7 digits, such as +220 712 3456
phone-continue = Continue
phone-missing = Enter your phone number.
phone-format = Enter a number with +220 and 7 digits, such as +220 712 3456.
phone-not-started = The request could not be sent to this number. Nothing was taken. { $another ->
    [no] Check the number.
   *[yes] Check the number, or pay another way.
}
other-method = Pay another way
test-numbers = Test numbers
test-number-0 = approved
test-number-1 = not enough money
test-number-2 = refused by the payer
test-number-3 = never answers
test-number-4 = paid, but the answer is lost
test-number-5 = approved after 30 seconds
test-number-6 = reports the outcome twice
test-number-other = Any other number waits for you on the simulator’s page.

## Approve on the phone
approve-title = Approve it on your phone
approve-sent = We sent a request to { $phone }. Open it and enter your PIN.
approve-done = I have approved it
approve-nothing = Nothing on your phone?
approve-nothing-1 = Check that the phone is on and has signal. It can take a minute.
approve-nothing-2 = Is the number above not yours? Wait until this request has ended: then you can pay with another number.
approve-wait = This page shows the answer by itself.
resend = Send it again
resend-after = { $count ->
    [one] You can send it again after { $count } second.
   *[other] You can send it again after { $count } seconds.
}
simulator-open-phone = Open the simulated phone
simulator-open-wave = Open the simulated Wave
simulator-open-card = Open the simulated card page
simulator-code = Test mode: the code is { $code }.

## Code
code-title = Enter the code
code-sent = { $count ->
    [one] We sent { $count } digit by SMS to { $phone }.
   *[other] We sent { $count } digits by SMS to { $phone }.
}
code-label = Code from the SMS
code-left = { $count ->
    [one] You have { $count } try left.
   *[other] You have { $count } tries left.
}
code-pay = Pay { $amount }
code-missing = Enter the code from the SMS.
code-format = { $count ->
    [one] The code has { $count } digit.
   *[other] The code has { $count } digits.
}
code-wrong = This code is not right. Look at the newest SMS.
code-expired = This code is too old. Send a new one.
code-not-sent-again = A new code can’t be sent any more. You can still enter the one that you got.
code-nothing = No SMS yet?
code-nothing-number = Check that the number above is yours.

## Redirect
redirect-title-wave = Continue in Wave
redirect-body-wave = Approve the payment in Wave, then come back to this page.
redirect-open-wave = Open Wave
redirect-again-wave = Open Wave again
redirect-title-card = Continue on the card page
redirect-body-card = Enter your card there. Then you come back to this page.
redirect-open-card = Open the card page
redirect-again-card = Open the card page again
redirect-title-afrimoney = Continue with Afrimoney
redirect-body-afrimoney = Approve the payment there, then come back to this page.
redirect-open-afrimoney = Open Afrimoney
redirect-again-afrimoney = Open Afrimoney again
redirect-title-qmoney = Continue with QMoney
redirect-body-qmoney = Approve the payment there, then come back to this page.
redirect-open-qmoney = Open QMoney
redirect-again-qmoney = Open QMoney again
redirect-opens = It opens by itself in a moment.
leaving-title = Back to the shop
leaving-body = You did not pay. You return to { $merchant }.

## Checking
checking-title = We are asking { $who } whether you paid
checking-warning = Don’t pay again.
checking-body = This page shows the answer by itself.
checking-close = You can close this page; the shop will be told.
look-again = Look again now

## Paid
paid-title = Paid
paid-thanks = { $merchant } will be told.
paid-with = Paid with
paid-with-card = Card
paid-with-cash = Cash
paid-with-bank-transfer = Bank transfer
paid-with-check = Cheque
paid-with-western-union = Western Union
paid-with-other = Another way
paid-at = When
paid-number = Payment number
back-to-shop = Back to { $merchant }
back-soon = You return to the shop in a few seconds.
stay = Stay on this page
print = Print
can-close = You can close this page.

## Not paid
not-paid-title = Not paid
not-paid-again = { $another ->
    [no] Try again
   *[yes] Try again, or pay another way
}
reason-funds = There is not enough money in the { $method } wallet.
reason-card-funds = There is not enough money on this card.
reason-declined = The payment was refused in { $method }.
reason-card-declined = The bank refused this card.
reason-wrong-code = The code was wrong too often.
reason-expired = The request was not approved in time.
reason-cancelled = The payment was stopped before it was approved.
reason-error = { $method } could not finish the payment.
reason-card-error = The bank could not finish the payment.
nothing-taken = Nothing was taken.

## The ends
expired-title = The time to pay is over
expired-body = This page can no longer take the payment.
cancelled-title = Cancelled
cancelled-body = This payment was cancelled.
start-again = To pay, start again in the shop.
not-certain = We do not know yet whether money was taken: { $method } has not answered. Don’t pay again. We keep asking, and the shop will be told.
late-title = Your money arrived late
late-expired = It arrived after the time to pay was over.
late-cancelled = It arrived after the payment was cancelled.
late-body = Nothing is lost. { $merchant } will be told, and either delivers or pays you back. Keep the payment number.
already-title = This is already paid
already-body = Nothing more was taken.
already-second = A second payment arrived as well.
refunded-title = Paid back

## Simulator
simulator = Simulator
simulator-body = You play the payer.
simulated-wave = Wave, simulated
simulated-afrimoney = Afrimoney on the phone, simulated
simulated-qmoney = QMoney on the phone, simulated
simulated-card = Card page, simulated
simulated-bank = The bank asks, simulated
simulated-done = Done
simulated-asks = { $merchant } asks for { $amount }.
simulated-phone = Phone { $phone }
simulated-choose = What does the payer do?
simulated-faults = Rarer outcomes
simulated-bank-asks = Card ending in { $last4 }: did you start this payment?
simulated-bank-yes = Yes, it is me
simulated-bank-no = No, refuse it
simulated-result = Chosen: { $outcome }.
simulated-result-body = The payment’s own page shows what came of it.
simulated-back = Back to the payment
outcome-approve = Approve
outcome-funds = Not enough money
outcome-refuse = Refuse
outcome-silent = Never answer
outcome-lost = Pay, but lose the answer
outcome-later = Approve after 30 seconds
outcome-twice = Report the outcome twice
card-choose = Test card
card-pay = Pay { $amount }
card-cancel = Go back without paying
card-approved = approved
card-declined = declined
card-no-funds = not enough money
card-challenge = the bank asks first (3-D Secure)
card-not-chosen = Choose one of the test cards.
card-unknown = That is not a test card.

## Invoice
invoice-line = Invoice { $number }
invoice-due-line = Invoice { $number }, due { $day }
invoice-overdue-line = Invoice { $number }, was due { $day }
invoice-part-paid = { $paid } of { $total } is paid.
invoice-details = What is billed
invoice-to = Billed to
invoice-issued = Issued
invoice-due = Due
invoice-before-tax = Before tax
invoice-tax = Tax ({ $rate } %)
invoice-paid = Paid
invoice-left = Left to pay
invoice-payments = Payments received
invoice-document = Download the invoice (PDF)
invoice-paid-whole = This invoice is paid in full.
invoice-cancelled = This invoice was cancelled. There is nothing to pay.
received = We received { $amount }
choose-rest-title = How do you want to pay the rest?
part-summary = Pay only a part now
part-label = Amount to pay now
part-hint = Up to { $amount }. Leave it empty to pay all.
part-other-summary = Pay another amount
part-other-hint = Up to { $amount }. Leave it empty to pay { $asked }.
part-line = A part of { $left } that is left to pay.
part-format = Write the amount in digits, such as { $example }.
part-too-much = Only { $amount } is left to pay.
amount-too-small = Write an amount above 0.
amount-too-large = This amount is too large. Write a smaller one.
late-invoice-cancelled = It arrived after the invoice was cancelled.
draft-title = This invoice is not ready yet
draft-body = { $merchant } is still writing it. There is nothing to pay now.

## Payment link
field-amount = Amount
field-name = Your name
field-email = E-mail address
field-optional = (optional)
field-select = Choose
field-currency = In { $currency }
field-between = From { $least } to { $most }
field-least = At least { $amount }
field-most = At most { $amount }
field-missing = Fill in this field.
field-email-missing = Enter your e-mail address.
field-select-missing = Choose one of the answers.
field-box-missing = Tick this box to go on.
field-too-long = This is too long.
field-card-number = Don’t write a card number here.
field-email-format = Enter an e-mail address, such as awa@example.gm.
field-phone-hint = +220 and 7 digits, such as +220 712 3456, or another country’s number with + and its code
field-phone-format = Enter a number with +220 and 7 digits, such as +220 712 3456, or another country’s number with + and its code.
field-number-format = Enter a number in digits.
field-format = This can’t be used. Check it.
closed-title = No more payments here
closed-by-merchant = This link takes no payments any more.
closed-expired = The time to pay with this link is over.
closed-used-up = This link has been paid as often as it can be.
closed-body = Ask { $merchant } for another way to pay.
fields-title = Fill this in, then choose how to pay
received-apart-title = Your payment was more than what was left
apart-earlier = An earlier payment was more than what was left.
received-apart = It is kept apart, and { $merchant } can pay it back. Give them this number:
received-too = { $merchant } has it and can pay it back. Give them this number:
qr-label = QR code with the address of this page
qr-body = To pay on your phone, point its camera here.

## Check a receipt
verify-title = Check a receipt
verify-intro = Scan the QR code on a receipt with your phone’s camera. This page then shows what was really paid. Or enter the receipt’s validation code below.
verify-intro-private = What the QR code holds is checked on your device, and nothing of it is sent. A validation code is sent to { $host }, which looks it up.
verify-no-script = Enter the receipt’s validation code below. QR codes are checked on your device, and this page needs JavaScript for it.
verify-valid-title = This payment is genuine
verify-valid-body = { $host } has signed this:
verify-merchant = Paid to
verify-number = Receipt number
verify-compare = Compare this with the receipt before you. Only a long name may end earlier here, with “…”. If anything else is different there, the receipt is not genuine.
verify-later = This was true at the time of the payment. It does not say whether money was paid back later.
verify-payer-title = Who paid?
verify-payer-body = Type the name and the validation code as the receipt shows them. Both stay on your device.
verify-payer = Payer
verify-code = Validation code
verify-code-hint = 32 digits and letters from a to f
verify-payer-check = Check the payer
verify-payer-yes = This name and this code belong to the payment.
verify-payer-no = This name and this code do not belong together. Compare both with the receipt.
verify-invalid-title = Not a valid receipt
verify-invalid-body = { $host } has not signed this. Do not accept it as proof of a payment.
verify-invalid-why = It may be forged, or part of the code is missing. Scan the whole code again, or ask the shop.
verify-outdated-title = Open this page again
verify-outdated-body = The receipt names a key that this page does not know. It may be newer than the page, which needs the internet to learn of it. The receipt may be good or not: this page cannot say.
verify-unsupported-title = This browser cannot check receipts
verify-unsupported-body = It is too old, or the address of this page does not begin with https. Open the page in a newer browser. The receipt may be good or not: this page cannot say. You can enter its validation code below.
verify-paste-title = Check by hand
verify-paste = Code of the receipt
verify-paste-hint = The validation code, 32 digits and letters from a to f, or all that the QR code holds.
verify-code-format = Enter the validation code: 32 digits and letters from a to f.
verify-issued-body = { $host } has issued this receipt:
verify-refunded = Paid back since
verify-unknown-title = No receipt has this code
verify-unknown-body = { $host } has issued no receipt with this validation code. Do not accept it as proof of a payment.
verify-unknown-why = Compare the code with the receipt, character by character, and try again, or scan its QR code.
verify-check = Check

## Messages
not-found-title = There is no payment here
not-found-body = The address may be incomplete. Go back to the shop and open its link again.
foreign-title = This form did not come from this page
foreign-body = It was not used. Open the payment again.
too-large-title = This is too much text
too-large-body = It was not used. Open the payment again, and write less.
too-many-title = Too many requests
too-many-body = Wait a minute, then try again.
unavailable-title = Not available for a moment
unavailable-body = We could not handle this right now. Wait a moment, then look again. The page tells you whether you paid.
fault-title = Something went wrong on our side
fault-body = Look again in a moment. The page tells you whether you paid.
fault-number = Tell the shop this number:
